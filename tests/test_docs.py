"""The documentation names every setting, operation, command, option and problem, and nothing that does not exist."""

import io
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import click
import pytest
from babel.messages.pofile import read_po
from bench import document, results
from largesse_client.mcp import SETTINGS as OF_ASSISTANTS
from prometheus_client import REGISTRY
from tests.cli.conftest import commands_in

import largesse.main  # noqa: F401 - what serves and works has registered its metrics
from largesse import housekeeping  # noqa: F401 - it imports the tasks of all rooms, whose metrics are of METRICS
from largesse.audit.model import ACTS
from largesse.base.money import MAX_AMOUNT
from largesse.base.settings import load_settings, secret_names
from largesse.cli import main
from largesse.connections.manager import IDLE_S, MAX_CONNECTIONS
from largesse.customers.authenticator import WRONG_KEYS_A_MINUTE
from largesse.customers.members import MOST_PEOPLE
from largesse.customers.passkeys import MOST_PASSKEYS
from largesse.demo.prepare import welcome
from largesse.fulfilment import tasks as fulfilment
from largesse.ledger import bank_file, top_ups
from largesse.ledger.accounts import LONGEST_NAME, MOST_ACCOUNTS, MOST_WATCHERS
from largesse.ledger.receivables import MOST_MONTHS
from largesse.ledger.verification import MOST_AT_ONCE
from largesse.lines import attempts
from largesse.mail import mailer
from largesse.mail.resending import MAX_RESENDS_A_DAY
from largesse.orders.options import MAX_FROM_NAME, MAX_MESSAGE
from largesse.orders.placer import SMALL_ORDER_CODES
from largesse.orders.quotes import QUOTE_HOLDS
from largesse.orders.recipients import MAX_CODES, MAX_NAME, MAX_QUANTITY
from largesse.orders.request import MAX_QUOTE, MAX_REFERENCE, MAX_SOURCE
from largesse.privacy import retention  # noqa: F401 - its metric is one of METRICS
from largesse.suppliers import buyer  # noqa: F401 - its metrics are of METRICS
from largesse.templates.service import MOST_TEMPLATES
from largesse.web.api.routes import operations_of
from largesse.web.docs.pages import DocsPages
from largesse.web.kit.body import BODY_TIMEOUT_S, MAX_BODY_BYTES
from largesse.web.kit.headers import MAX_HEADER_BYTES
from largesse.web.kit.problems import PROBLEMS
from largesse.webhooks import outcomes, resolver
from largesse.webhooks.deliverer import IN_FLIGHT
from largesse.webhooks.outcomes import MAX_ATTEMPTS
from largesse.webhooks.service import REQUESTED_A_MINUTE, SAMPLES_A_MINUTE
from largesse.webhooks.store import MAX_SUBSCRIPTIONS

ROOT = Path(__file__).parents[1]
CATALOGUES = [
    read_po(io.BytesIO(path.read_bytes())) for path in (ROOT / "src/largesse").rglob("*.po") if "de" in str(path)
]
ALL = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs/decisions").glob("0*.md"))
MOST_WORDS_OF_A_DECISION = 550  # about a page
README = (ROOT / "README.md").read_text()
PAGES = {path.stem: path.read_text() for path in (ROOT / "docs").glob("*.md")}
GUIDES = sorted((ROOT / "docs/guides").glob("*.md"))
DEVELOPERS = "\n".join(path.read_text() for path in GUIDES)

SETTINGS = re.findall(r'"(LARGESSE_[A-Z_]+)"', (ROOT / "src/largesse/base/settings.py").read_text())
OF_SAMPLES = {"LARGESSE_API_KEY"}  # what a caller's shell holds, no setting of the service
ASSISTANTS = PAGES["assistants"]

METRICS = {
    f"{metric.name}_total" if metric.type == "counter" else metric.name
    for metric in REGISTRY.collect()
    if metric.name.startswith("largesse_")
}


def of_each_document(holds: Callable[[Path], None]) -> Callable[[], None]:
    """A test that goes through all documents and says what is wrong in which: a test of each would take longer than what it does."""

    def test() -> None:
        wrong = []
        for path in ALL:
            try:
                holds(path)
            except AssertionError as error:
                wrong.append(f"{path.relative_to(ROOT)}: {error}")
        assert not wrong, "\n".join(wrong)

    return test


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command under its full name, groups left out."""
    if isinstance(command, click.Group):
        for sub_name, sub in commands_in(command).items():
            yield from commands(sub, f"{name} {sub_name}")
    else:
        yield name, command


COMMANDS = dict(commands(main, "largesse"))


def options(command: click.Command) -> set[str]:
    return {name for p in command.params if isinstance(p, click.Option) for name in p.opts} | {"--help"}


def code(text: str) -> Iterator[str]:
    """What stands in backticks, and the lines of shell and service blocks."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if language in {"sh", "ini", ""}:
            yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def section(text: str, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


def anchors(path: Path) -> set[str]:
    """The addresses of a document's headings, as code hosts make them."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


# Everything is named


def test_every_setting_has_its_row() -> None:
    rows = re.findall(r"^\| `(LARGESSE_[A-Z_]+)` \|", section(PAGES["settings"], "Settings"), re.MULTILINE)
    assert rows == list(dict.fromkeys(SETTINGS)), (
        "a setting has a row in docs/settings.md, in the order of base/settings.py"
    )


def test_every_setting_has_its_limits() -> None:
    source = (ROOT / "src/largesse/base/settings.py").read_text()
    limited = re.findall(r'read\.(?:count|number|days)\(\s*"(\w+)".*?highest=([\d_.]+)', source)
    assert len(limited) > 5
    rows = dict(re.findall(r"^\| `(LARGESSE_[A-Z_]+)` \|(.*)", section(PAGES["settings"], "Settings"), re.MULTILINE))
    without = [name for name, highest in limited if f"to {float(highest):,.0f}" not in rows.get(name, "")]
    assert without == [], "the row of a number has its limits, as `0 to 10,000`"


def test_every_setting_of_the_server_for_assistants_has_its_row() -> None:
    rows = re.findall(r"^\| `(LARGESSE_[A-Z_]+)` \|", section(ASSISTANTS, "Settings"), re.MULTILINE)
    assert rows == list(OF_ASSISTANTS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_row_with_every_option(name: str) -> None:
    rows = re.findall(r"^\| `(.+?)` \|", PAGES["commands"], re.MULTILINE)
    found = [row for row in rows if re.match(rf"{name}( |$)", row)]
    assert len(found) == 1, "a command has one row in docs/commands.md"
    (row,) = found
    assert set(re.findall(r"--[a-z-]+", row)) == options(COMMANDS[name]) - {"--help"}, "the row has each option"


def test_every_metric_has_its_row() -> None:
    rows = re.findall(r"^\| `(largesse_\w+)` \|", PAGES["metrics"], re.MULTILINE)
    assert sorted(rows) == sorted(METRICS), "a metric has a row in docs/metrics.md"
    assert f"every {fulfilment.MEASURE_EVERY_S / 60:g} minutes" in PAGES["metrics"]


def test_every_log_event_has_its_row() -> None:
    """Every event that code of the service logs under a name of its own."""
    logged = set()
    for path in (ROOT / "src").rglob("*.py"):
        logged |= set(re.findall(r"\b_?log\.\w+\(\s*(?:[^\"()]*,\s*)?\"([a-z_.]+)\"", path.read_text()))
    rows = re.findall(r"^\| (`[a-z_.]+`.*?) \|", PAGES["log-events"], re.MULTILINE)
    assert logged - set(re.findall(r"`([a-z_.]+)`", " ".join(rows))) == set(), "add these to docs/log-events.md"


@pytest.mark.parametrize("operation", operations_of("staging"), ids=lambda operation: operation.name)
def test_every_operation_is_in_the_developer_guide(operation: object) -> None:
    wanted = f"{operation.method} {operation.path}"
    assert any(re.match(re.escape(wanted) + r"($|\?)", span) for span in code(DEVELOPERS)), wanted


def test_every_act_has_its_row() -> None:
    rows = re.findall(r"^\| (`[a-z_]+\.[a-z_]+`.*?) \|", section(PAGES["audit"], "Audit log"), re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`(.+?)`", row)) == sorted(ACTS), (
        "an act is a line of ACTS and in a row of docs/audit.md"
    )


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.slug)
def test_every_problem_is_in_the_developer_guide(problem: type) -> None:
    assert re.search(rf"^\| {problem.status} \| `/problems/{problem.slug}` \|", DEVELOPERS, re.MULTILINE)


@pytest.mark.parametrize(
    ("about", "limit"),
    [
        ("request body", f"{MAX_BODY_BYTES // 2**20} MiB, whole within {BODY_TIMEOUT_S} seconds"),
        ("codes in one order", f"{MAX_CODES:,}; one recipient {MAX_QUANTITY:,}"),
        ("texts", f"`externalReference` {MAX_REFERENCE} characters"),
        ("texts", f"`source` {MAX_SOURCE},"),
        ("texts", f"`fromName` {MAX_FROM_NAME}, `message` {MAX_MESSAGE},"),
        ("texts", f"`quote` {MAX_QUOTE}, a recipient's name {MAX_NAME},"),
        ("request headers", f"{MAX_HEADER_BYTES // 1024} KiB together"),
        ("quotes", f"hold for {QUOTE_HOLDS // timedelta(minutes=1)} minutes"),
        ("an amount", f"{MAX_AMOUNT:,} in major units"),
        ("low balance mail", f"{MOST_WATCHERS} people of an account"),
        ("amounts due", f"{MOST_MONTHS} in the file"),
        ("entries verified", f"{MOST_AT_ONCE:,} entries"),
        ("funding accounts", f"{MOST_ACCOUNTS}, the closed ones too; a name {LONGEST_NAME} characters"),
        ("top-ups", f"{top_ups.MAX_WAITING} in each environment, each for {top_ups.WAITS_FOR.days} days"),
        ("a bank's file", f"{bank_file.MAX_BYTES // 2**20} MiB, {bank_file.MAX_LINES:,} lines"),
        ("people of a customer", f"{MOST_PEOPLE}; each has at most {MOST_PASSKEYS} passkeys"),
        ("templates of a customer", f"{MOST_TEMPLATES};"),
        ("names of webhook targets", f"{resolver.OF_ONE_CUSTOMER} look-ups of one customer at once"),
        ("names of webhook targets", f"{resolver.AT_ONCE} of a process; {resolver.LONGEST_S:g} seconds each"),
        ("webhooks on request", f"{SAMPLES_A_MINUTE} samples a subscription and minute"),
        ("webhooks on request", f"{REQUESTED_A_MINUTE} samples and redeliveries a customer"),
        ("webhook attempts", f"at most {outcomes.SCHEDULE.cap_s / 3600:g} hours apart"),
        ("mail ", f"after {mailer.SCHEDULE.first_s:g} seconds, twice as long each time up to an hour"),
        ("mail ", f"for {mailer.GIVE_UP_AFTER_S / 86400:g} days; resent on request {MAX_RESENDS_A_DAY} times"),
        (
            "wrong PINs",
            f"{attempts.FAILURES_TO_PAUSE} in a row pause a code for {attempts.FIRST_PAUSE.seconds // 60} minutes",
        ),
        (
            "wrong PINs",
            f"up to a day; {attempts.ADDRESS_ALLOWANCE:g} wrong answers in {attempts.ADDRESS_REFILL.seconds // 60} minutes",
        ),
        ("orders waiting", f"more than {SMALL_ORDER_CODES} codes"),
        ("connections of a serving process", f"{MAX_CONNECTIONS:,}, idle ones for {IDLE_S:g} seconds"),
        ("wrong API keys", f"{WRONG_KEYS_A_MINUTE} a minute from one address"),
        ("webhook subscriptions", f"{MAX_SUBSCRIPTIONS};"),
        ("webhook attempts", f"{MAX_ATTEMPTS} a delivery"),
        ("webhook attempts", f"{IN_FLIGHT} in flight"),
    ],
)
def test_limits_are_those_of_the_code(about: str, limit: str) -> None:
    (row,) = re.findall(rf"^\| {about}.*$", section(PAGES["settings"], "Limits"), re.MULTILINE)
    assert limit in row


# Nothing else is named


@of_each_document
def test_settings_that_are_named_exist(path: Path) -> None:
    named = set(re.findall(r"\bLARGESSE_[A-Z_]+\b", path.read_text()))
    assert named <= {*SETTINGS, *OF_SAMPLES, *OF_ASSISTANTS, *(f"{name}_FILE" for name in secret_names())}


@of_each_document
def test_metrics_that_are_named_exist(path: Path) -> None:
    named = set(re.findall(r"\blargesse_[a-z_]+(?:_seconds|_total)\b", path.read_text()))
    assert named <= METRICS


@of_each_document
def test_commands_that_are_named_exist(path: Path) -> None:
    for span in code(path.read_text()):
        if found := re.search(r"(?:^|/bin/)(largesse(?: [a-z-]+)+)(.*)", span.split("#")[0]):
            name = max((known for known in COMMANDS if f"{found[1]} ".startswith(f"{known} ")), default=None)
            group = found[1] == "largesse keys" or found[0].strip() == "largesse --version"
            assert name or group, span
            if name:
                assert set(re.findall(r"--[a-z-]+", found[2].split(" | ")[0])) <= options(COMMANDS[name]), span


@of_each_document
def test_operations_that_are_named_exist(path: Path) -> None:
    known = {(operation.method, operation.path) for operation in operations_of("staging")}
    known |= {("GET", page.path) for page in DocsPages(load_settings({})).routes()}
    for span in code(path.read_text()):
        if found := re.fullmatch(r"(GET|POST|PUT|PATCH|DELETE) (/[^\s?]*)(\?\S*)?", span):
            assert (found[1], found[2]) in known, span


@of_each_document
def test_make_targets_that_are_named_exist(path: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for span in code(path.read_text()):
        if found := re.match(r"make ([a-z-]+)$", span.split("#")[0].strip()):
            assert found[1] in targets or found[1].startswith("bench-"), span


@of_each_document
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("https://"):
            continue
        name, _, fragment = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        if fragment:
            assert fragment in anchors(target), link


def test_the_readme_leads_to_every_document() -> None:
    for path in ALL:
        if path.parent.name not in {"decisions", "upgrades", "guides"} and path.name != "README.md":
            assert f"]({path.relative_to(ROOT)})" in README


def test_the_architecture_lists_every_room() -> None:
    table = section(PAGES["architecture"], "Rooms")
    listed = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]+)\|", table, re.MULTILINE))))
    assert [path.parent.name for path in sorted(ROOT.glob("src/largesse/*/__init__.py"))] == sorted(
        name for name in listed if (ROOT / "src/largesse" / name).is_dir()
    )


@pytest.mark.parametrize("path", [ROOT / "docs/quick-start.md", *GUIDES], ids=lambda path: path.name)
def test_samples_for_developers_fit_the_page(path: Path) -> None:
    """Longer lines scroll sideways in the site."""
    samples = re.findall(r"^```\w+\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
    assert [line for text in samples for line in text.splitlines() if len(line) > 92] == []


def test_the_list_of_guides_leads_to_every_guide() -> None:
    for path in GUIDES:
        assert f"](guides/{path.name})" in PAGES["guide-developer"]
        assert re.search(r"\nNext: .*\]\(.+\.md\).*\.\n$", path.read_text()) or path.stem == "going-live", path.name


def test_the_readme_shows_what_the_demo_prints() -> None:
    test_mode = ("http://127.0.0.1:8001", "lgs_test_…")
    printed = welcome("http://127.0.0.1:8000", "lgs_live_…", "", "", test_mode=test_mode, product_id=1, account_id=1)
    shown = re.findall(r"^```(?:sh)?\n((?:Largesse is running|curl ).*?)^```", README, re.DOTALL | re.MULTILINE)
    assert len(shown) == 2
    for block in shown:
        assert block in printed


def test_nothing_is_cited_that_is_not_here() -> None:
    """Documents and make targets that comments and docstrings name."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for source in [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.sql"), *(ROOT / "bench").rglob("*.py")]:
        text = source.read_text()
        for name in re.findall(r"[\w/.-]+\.md\b", text):
            assert name in {path.name for path in ALL} or (ROOT / name).is_file(), f"{source}: {name}"
        for name in re.findall(r"`make ([a-z-]+)", text):
            assert name in targets or name.startswith("bench-"), f"{source}: make {name}"


def test_decisions_are_numbered_without_gaps_and_listed() -> None:
    listed = (ROOT / "docs/decisions/index.md").read_text()
    for number, path in enumerate(DECISIONS, 1):
        title = path.read_text().splitlines()[0]
        assert path.name.startswith(f"{number:04}-"), path.name
        assert title.startswith(f"# {number}. "), path.name
        assert re.search(rf"^\| \[{re.escape(title[2:])}\]\({path.name}\) \| \S.* \|$", listed, re.MULTILINE), path.name


@of_each_document
def test_decisions_are_named_by_their_numbers(path: Path) -> None:
    for number, page in re.findall(r"\[decision\s+(\d+)\]\((?:[\w/.]*/)?(\d{4})-", path.read_text()):
        assert int(number) == int(page), f"decision {number} leads to {page}"


def test_decisions_have_one_form() -> None:
    for path in DECISIONS:
        text = path.read_text()
        assert text.splitlines()[2].startswith("**Status:** "), path.name
        assert re.findall(r"^## (.+)", text, re.MULTILINE) == ["Context", "Decision", "Consequences"], path.name
        words = len(re.findall(r"\S*\w\S*", text))
        assert words <= MOST_WORDS_OF_A_DECISION, f"{path.name}: {words} words"


@of_each_document
def test_paths_that_are_named_exist(path: Path) -> None:
    for span in code(path.read_text()):
        if re.fullmatch(r"(docs|src|tests|bench)/[\w./-]+", span):
            assert (ROOT / span).exists(), span


@pytest.mark.parametrize("page", [*sorted(name for name in PAGES if name.startswith("guide-")), "customers", "office"])
def test_guides_name_buttons_and_pages_as_the_pages_do(page: str) -> None:
    """In italics; "…" stands for what a text leaves open."""
    texts = {re.sub(r"%\(\w+\)[sd]", "…", text.rstrip("…")) for text in _texts()}
    named = re.findall(r"(?<![*\w])\*([A-Z][^*\n]+)\*(?!\*)", PAGES[page])
    assert [name for name in named if name not in texts] == [], "no page has these texts"


def _texts() -> Iterator[str]:
    for message in (message for catalogue in CATALOGUES for message in catalogue):
        yield from [message.id] if isinstance(message.id, str) else message.id


def test_the_page_about_performance_says_what_was_measured() -> None:
    measured = results.read(document.RESULTS)
    assert document.DOCUMENT.read_text(encoding="utf-8") == document.render(measured)


def test_every_benchmark_is_among_the_results_of_that_page() -> None:
    measured = {row.name.split(",")[0] for row in results.read(document.RESULTS).rows}
    assert measured >= {*document.NAMES, "memory"}
