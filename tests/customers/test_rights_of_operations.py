"""Operations refuse by themselves whom their routes refuse, so that no other caller can leave the right out.

An operation is a function whose first parameter is an `Actor`. Each is called with actors whose transactions cannot begin: nothing is read or written.
"""

import inspect
import pkgutil
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from importlib import import_module
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import largesse
from largesse.approvals.model import ApprovalRule
from largesse.branding.service import BrandContent, WrappingContent
from largesse.budgets.service import NewBudget
from largesse.customers.access import AccessChanged
from largesse.customers.actor import Actor
from largesse.customers.roles import RIGHTS, ROLES, Reach, Right
from largesse.customers.staff_roles import STAFF_RIGHTS, STAFF_ROLES, StaffMember, StaffRight
from largesse.fulfilment.inventory import InventoryProduct, Upload
from largesse.ledger.bank_file import BankLine, Columns
from largesse.orders.follow_ups import FollowUpDefaults
from largesse.privacy.requests import Kind
from largesse.reports.across import By
from largesse.web.console.routes import ROUTES
from largesse.web.office.routes import ROUTES as OFFICE_ROUTES

# Parts of the names of operations without a right: for commands; for whom a rule names, and for callers with a right. Then those that read first.
OPEN = (
    "members.named_", "service_accounts.named_", "key_rotation.rotate", "seed.export", "seed.load", "import_offers",
    "approvals.service.decide", "approvals.service.list_seen", "approvals.service.read_request", "actor.record_export",
)  # fmt: skip
# Operations that no page calls by itself: keys, commands and other operations do. Who may perform them, besides keys and commands.
WITHOUT_PAGE = {
    "contacts.groups.changing_contacts": (Right.CONTACTS,),
    "customers.customers.create_customer": (StaffRight.CUSTOMERS,),
    "drafts.store.changing_draft": (Right.SEND,),
    "fulfilment.shipments.export_shipments": (StaffRight.PARCELS,),
    "lab.clock.advance_clock": (Right.SEND,),
    "lab.clock.read_clock": (Right.SEND,),
    "lab.service.claim_gift": (Right.SEND,),
    "lab.service.trigger_event": (Right.SETTINGS,),
    "ledger.accounts.assign_account": (Right.SETTINGS, StaffRight.CUSTOMERS),
    "ledger.payments.match_payments": (StaffRight.MONEY,),
    "ledger.top_ups.credit_account": (StaffRight.MONEY,),
    "privacy.erasing.begin": (StaffRight.PRIVACY,),
    "privacy.erasing.carry_out": (StaffRight.PRIVACY,),
    "privacy.erasing.take_step": (StaffRight.PRIVACY,),
    "privacy.service.export": (StaffRight.PRIVACY,),
    "staff.service.find_staff": (StaffRight.STAFF,),
    "templates.service.change_template": (Right.TEMPLATES,),
}
AUDITORS_READ = ("confirm_file", "credit_line", "dismiss_line", "count_given_up")


class Anything(str):
    """An argument for which there is none in GIVEN."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return Anything("x")

    def __call__(self, *_: Any, **__: Any) -> Any:
        return Anything("x")


X = Anything("x")
RULE = ApprovalRule(customer_id=1, id=1, environment="production", name="X", role="member", approver_ids=frozenset({1}))
# Arguments that operations look at first.
GIVEN: dict[str, dict[str, Any]] = {
    "create_rule": {"rule": RULE},
    "add_wrapping": {"content": WrappingContent("X", "dots", "#112233", "#445566")},
    "set_brand": {"content": BrandContent()},
    "set_logo": {"content": b""},
    "create_budget": {"new": NewBudget(name="X", currency="GBP", kind="role", role="member", limit_minor=1)},
    "begin_view": {"reason": "for a test of rights"},
    "import_vouchers": {"stocked": InventoryProduct(1, "x", "X", "GBP", (5,)), "path": Upload("f", b"1\n")},
    "note_return": {"reason": "address"},
    "advance_clock": {"by": timedelta(1)},
    "trigger_event": {"event": "order.created"},
    "read_file": {"content": b"Amount,Currency\n1,GBP\n", "columns": Columns()},
    "match_payments": {"lines": [BankLine(1, "1", "GBP", (), b"")]},
    "credit_account": {"account": {"customer_id": 1, "environment": "production"}},
    "transfer": {"from_id": 1, "to_id": 2},
    "erase_for": {"request": SimpleNamespace(kind=Kind.ERASE, id=1, customer_id=1, sealed_email=X)},
    "search_gifts": {"by": By.ADDRESS, "sought": "ada@acme.example"},
    "create_subscription": {"url": "https://1.1.1.1/x", "allowed": ()},
    "set_defaults": {"defaults": FollowUpDefaults()},
}


def _operations() -> Iterator[tuple[str, FunctionType]]:
    for found in pkgutil.walk_packages(largesse.__path__, "largesse."):
        if found.name.startswith(("largesse.web.", "largesse.cli", "largesse.demo", "largesse.__main__")):
            continue
        for name, function in inspect.getmembers(import_module(found.name), inspect.isfunction):
            first = next(iter(inspect.signature(function).parameters.values()), None)
            if function.__module__ == found.name and not name.startswith("_") and first and _named(first) == "Actor":
                yield f"{found.name}.{name}".removeprefix("largesse."), function


def _named(parameter: inspect.Parameter) -> str:
    """The annotation as its module has it: a text, where the module puts off reading annotations."""
    return getattr(parameter.annotation, "__name__", str(parameter.annotation))


class Begun(Exception):
    """The transaction of an operation was begun."""


def _begin(_: bool) -> Any:
    raise Begun


def _actor(routes: Any, role: str, environment: str) -> Actor:
    if routes is OFFICE_ROUTES:
        return Actor(X, _begin, 1, environment, staff=StaffMember(1, 1, "a@b.example", "A", role, True))  # type: ignore[arg-type]
    return Actor(X, _begin, 1, environment, person=SimpleNamespace(role=role, user_id=1), caller=X)  # type: ignore[arg-type]


async def _refuses(name: str, operation: FunctionType, actor: Actor) -> bool:
    given = GIVEN.get(name.rpartition(".")[2], {})
    called = operation(actor, **{
        one.name: given.get(one.name, 1 if _named(one).startswith("int") else X)
        for one in list(inspect.signature(operation).parameters.values())[1:]
        if one.name in given or one.default is one.empty
    })  # fmt: skip
    try:
        await (anext(called) if inspect.isasyncgen(called) else getattr(called, "__aenter__", lambda: called)())
    except (AccessChanged, Begun) as outcome:
        return isinstance(outcome, AccessChanged)
    raise AssertionError(f"{name} began no transaction")


def _called_by(handler: Any, seen: set[Any]) -> Iterator[Any]:
    """What a handler names, and each function of the pages that it names."""
    handler = handler.func if isinstance(handler, partial) else getattr(handler, "__func__", handler)
    if isinstance(handler, FunctionType) and handler not in seen and handler.__module__.startswith("largesse.web."):
        seen.add(handler)
        names = set(_names(handler.__code__))
        known = [handler.__globals__.get(name) for name in names]
        known += [getattr(one, name, None) for one in known if isinstance(one, ModuleType | type) for name in names]
        known += [cell.cell_contents for cell in handler.__closure__ or ()]
        for one in known:
            yield one
            yield from _called_by(one, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)


async def test_each_operation_refuses_whom_its_routes_refuse() -> None:
    operations = {name: one for name, one in _operations() if not any(part in name for part in OPEN)}
    names = {one: name for name, one in operations.items()}
    checked, known = [], set(WITHOUT_PAGE)
    rights: dict[Any, Any]
    for routes, roles, rights in ((ROUTES, ROLES, {**RIGHTS}), (OFFICE_ROUTES, STAFF_ROLES, {**STAFF_RIGHTS})):
        may = {name: {role for one in held for role in rights.get(one, ())} for name, held in WITHOUT_PAGE.items()}
        for route in routes:
            for one in _called_by(route.handler, set()):
                if isinstance(one, FunctionType) and one in names:
                    may.setdefault(names[one], set()).update(route.roles)
        known |= may.keys()
        for name in may if routes is OFFICE_ROUTES else operations:
            environment = "staging" if name.startswith("lab.") else "production"
            for role in ("nobody", *{*roles} - may.get(name, {*roles})):
                is_refused = await _refuses(name, operations[name], _actor(routes, role, environment))
                assert is_refused or (name.endswith(AUDITORS_READ) and role == "auditor"), f"{name} takes {role}"
                checked.append(name)
    assert operations.keys() <= known, "neither a page calls them, nor WITHOUT_PAGE says who may"
    assert (len(operations) > 140, len(checked) > 500) == (True, True), len(checked)


# What each role may do, said once more. Right: admin, member, finance, viewer. A: all of the customer's, o: one's own, -: nothing.
EXPECTED = {
    Right.SEND: "Ao--",
    Right.SEE_ORDERS: "AoAA",
    Right.READ_CODES: "Ao--",
    Right.TEMPLATES: "AA--",
    Right.CONTACTS: "AA--",
    Right.SEE_FUNDS: "AoAA",
    Right.SEE_OWED: "A-AA",
    Right.MOVE_FUNDS: "AoA-",
    Right.TRANSFER: "A-A-",
    Right.SEE_BUDGETS: "AoAA",
    Right.SETTINGS: "A---",
    Right.AUDIT: "A-A-",
}
SIGNS = {Reach.ALL: "A", Reach.OWN: "o", None: "-"}


def test_each_role_has_its_rights_and_no_other() -> None:
    assert ROLES == ("admin", "member", "finance", "viewer")
    assert set(RIGHTS) == set(Right)
    assert {right: "".join(SIGNS[reaches.get(role)] for role in ROLES) for right, reaches in RIGHTS.items()} == EXPECTED
    assert all(set(reaches) <= set(ROLES) for reaches in RIGHTS.values())
