"""The rooms below web know nothing of what callers send and get, but for an order: they have no other shapes of JSON."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests import parsed

import largesse

PACKAGE = Path(largesse.__file__).parent
# Above web, or web itself; and what is about JSON: the payloads of events are told to receivers as they are.
ELSEWHERE = ("web", "events", "cli", "demo", "seed", "doctor", "verify", "connections")
FILES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if len(path.relative_to(PACKAGE).parts) > 1 and path.relative_to(PACKAGE).parts[0] not in ELSEWHERE
)


def shapes(source: str) -> Iterator[str]:
    """What in a module gives members other names, or describes JSON."""
    for node in parsed.nodes(source):
        keywords = node.keywords if isinstance(node, ast.ClassDef | ast.Call) else ()
        yield from (f"rename= in line {node.lineno}" for keyword in keywords if keyword.arg == "rename")
        if isinstance(node, ast.Attribute) and node.attr in {"schema", "schema_components"}:
            yield f"{node.attr} in line {node.lineno}"


def test_there_is_something_to_read() -> None:
    assert len(FILES) > 100
    assert list(shapes("class A(Struct, rename='camel'): ..."))
    assert list(shapes("defstruct('A', [], rename='camel')"))


def test_no_room_below_web_has_shapes_of_json() -> None:
    found = {str(path.relative_to(PACKAGE)) for path in FILES if list(shapes(path.read_text()))}
    assert found == SHAPES_OF_ORDERS


def test_no_rule_names_a_member_as_callers_spell_it() -> None:
    """A rule says `account_id`; `largesse.web.kit.problems` makes `accountId` of it."""
    spelled = re.compile(r"`[a-z]+[A-Z]\w*`")
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in FILES
        if (names := [name for text in raised(path.read_text()) for name in spelled.findall(text)])
    }
    assert not found


def raised(source: str) -> Iterator[str]:
    """The texts in what a module raises or returns as a refusal."""
    for call in parsed.nodes(source):
        if isinstance(call, ast.Call):
            name = ast.unparse(call.func).rpartition(".")[2]
            if name in {"refused", "InvalidRequest", "ReferenceUsed", "Unavailable", "NotFound"}:
                yield from (
                    part.value
                    for argument in call.args
                    for part in ast.walk(argument)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )


# What callers send and get of an order is declared once, with the rules on it: a twin in web would be the eighth shape of an order.
SHAPES_OF_ORDERS = {
    "lines/codes.py",
    "orders/lookup.py",
    "orders/order.py",
    "orders/recipients.py",
    "orders/request.py",
}
# What reads or writes JSON below web, none of it for callers.
JSON_OF_OURS = {
    "audit/service.py",  # columns of JSON
    "base/decoding.py",  # reads bodies for all of web
    "base/logs.py",
    "catalogue/content.py",  # columns of JSON
    "catalogue/draft_store.py",  # columns of JSON
    "catalogue/model.py",  # columns of JSON
    "encryption/chain.py",  # what is hashed
    "db/cluster.py",  # a file of the data directory
    "db/statements.py",  # rows on their way to a statement
    "contacts/store.py",  # a column of JSON
    "budgets/store.py",  # what a statement reads
    "drafts/store.py",  # columns of JSON
    "drafts/workbook.py",  # what its program says
    "drafts/workbook_process.py",
    "fulfilment/shipments.py",  # sealed
    "fulfilment/vouchers.py",  # sealed
    "ledger/own_accounts.py",  # what a statement reads
    "ledger/posting.py",  # rows on their way to a statement
    "customers/customer_store.py",  # a column of JSON
    "customers/restrictions.py",  # a column of JSON
    "orders/follow_ups.py",  # a column of JSON
    "orders/quotes.py",  # what is hashed
    "privacy/erasing_store.py",  # columns of JSON
    "orders/reading.py",  # what a statement reads
    "orders/request.py",  # members whose type depends on the rest of the request
    "orders/store.py",  # rows on their way to a statement, and the event that goes with an order
    "customers/passkeys.py",  # what a browser's passkey is asked, and what it answers
    "suppliers/http.py",  # requests to suppliers and their answers
    "reports/store.py",  # rows on their way to a statement
}


def test_no_room_below_web_encodes_json_for_callers() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in FILES
        if re.search(r"^import json\b|^from json\b|msgspec\.json\.", path.read_text(), re.MULTILINE)
    }
    assert found == JSON_OF_OURS
