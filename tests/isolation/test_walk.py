"""Whatever a customer asks for, it gets nothing of another's, nor of the other environment's, though its statements no longer say whose they are.

Each list and page is held against the one that the same request gets with the switch off, and none may hold a word of somebody else. A
request for a thing by any name that a thing of another has is answered as if that were not there.
"""

import re
from collections.abc import Sequence

import httpx
import pytest
from tests.campaigns.conftest import code_of
from tests.campaigns.conftest import work as work_on_campaigns
from tests.campaigns.test_pages import Visitor
from tests.isolation.neutral import neutralised
from tests.isolation.world import WORLD, Customer, fill, token_of
from tests.web.api.conftest import Service
from tests.web.claim.conftest import Recipient
from tests.web.console.conftest import Browser, signed_in

from largesse.web.api.routes import OPERATIONS
from largesse.web.console.routes import ROUTES

__all__ = ["WORLD"]

# The way in and out: nothing of a customer's is there, or the session ends.
LEFT_OUT = {"/app/sign-in", "/app/forgot", "/app/link/{secret}", "/app/{rest:path}"}
# What the parameters of forms' paths name, of a customer. A longer key says it for the paths that begin so.
NAMED = {
    "account": "SELECT id FROM accounts WHERE kind = 'funding' AND customer_id = $1",
    "/app/service-accounts": "SELECT id FROM service_accounts WHERE customer_id = $1",
    "automation": "SELECT id FROM automations WHERE customer_id = $1",
    "budget": "SELECT id FROM budgets WHERE customer_id = $1",
    "campaign": "SELECT id FROM campaigns WHERE customer_id = $1",
    "collection": "SELECT id FROM collections WHERE customer_id = $1",
    "contact": "SELECT id FROM contacts WHERE customer_id = $1",
    "draft": "SELECT id FROM drafts WHERE customer_id = $1",
    "field": "SELECT key FROM contact_fields WHERE customer_id = $1",
    "group": "SELECT id FROM contact_groups WHERE customer_id = $1",
    "key": "SELECT id FROM api_keys WHERE customer_id = $1",
    "/app/branding/wrappings": "SELECT key FROM own_wrappings WHERE customer_id = $1",
    "passkey": "SELECT k.id FROM passkeys k JOIN users u USING (person_id) WHERE u.customer_id = $1",
    "reference": "SELECT reference FROM orders WHERE customer_id = $1",
    "/app/funding/top-ups": "SELECT reference FROM top_ups WHERE customer_id = $1",
    "rule": "SELECT id FROM approval_rules WHERE customer_id = $1",
    "send": "SELECT id FROM drafts WHERE customer_id = $1",
    "session": "SELECT s.id FROM sessions s JOIN users u ON u.id = s.user_id WHERE u.customer_id = $1",
    "subscription": "SELECT id FROM webhook_subscriptions WHERE customer_id = $1",
    "template": "SELECT id FROM templates WHERE customer_id = $1",
    "user": "SELECT id FROM users WHERE customer_id = $1",
    "view": "SELECT id FROM saved_views WHERE customer_id = $1",
}
# Zebra's words, in either environment, and those of Heron's that are of the other environment than the one that is asked.
OF_ZEBRA = ["zebra"]


@pytest.fixture(scope="module")
def both(service: Service, staging: Service) -> tuple[Customer, Customer]:
    """Heron, who asks, and Zebra, whose things it asks for."""
    zebra, heron = (fill(service, staging, mark) for mark in ("zebra", "heron"))
    return heron, zebra


def undrawn(text: str) -> str:
    """A text without what is drawn at random: by chance that may hold any short word."""
    return re.sub(r'name="token" value="[^"]*"|nonce[-=]"?[\w+/=-]+"?|"instance":"[^"]*"', "", text)


def plain(answer: httpx.Response) -> tuple[int, str, str]:
    """An answer without what differs from one to the next: tokens, nonces, ids of requests, times."""
    body = undrawn(answer.text)
    body = re.sub(r"\d\d:\d\d(:\d\d(\.\d+)?)?Z?|\d+ (second|minute)s? ago", "TIME", body)
    return answer.status_code, answer.headers.get("location", ""), body


def stable(client: httpx.Client | Browser, paths: Sequence[str]) -> dict[str, tuple[int, str, str]]:
    """What each list says, but for pages that never say the same twice, as those that draw a secret."""
    first, again = ({path: plain(client.get(path)) for path in paths} for _ in range(2))
    told = {path: answer for path, answer in first.items() if again[path] == answer}
    assert len(told) > 0.8 * len(paths)
    return told


def foreign(answer: httpx.Response, words: Sequence[str], asked: object = "") -> list[str]:
    """Where an answer holds a word that it must not, but for what was asked for, which it may echo."""
    text = undrawn(answer.text).lower().replace(str(asked).lower(), "")
    return [f"{word}: {answer.request.method} {answer.request.url}" for word in words if word in text]


def lists_of_api() -> list[str]:
    return [operation.path for operation in OPERATIONS if operation.method == "GET" and "{" not in operation.path]


def lists_of_pages() -> list[str]:
    paths = [route.path for route in ROUTES if route.method == "GET" and "{" not in route.path]
    return [*(path for path in paths if path not in LEFT_OUT), "/app/orders?q=sam", "/app/orders.csv?q=sam"]


def named(path: str, name: object) -> str:
    return re.sub(r"\{\w+(:\w+)?\}", str(name), path)


def of_environment(key: str) -> list[str]:
    """What an answer to that key must not hold."""
    return [*OF_ZEBRA, "heronlive" if key.endswith("-test") else "heronstaging"]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["heron", pytest.param("heron-test", marks=pytest.mark.long)])
def test_over_the_api(service: Service, staging: Service, both: tuple[Customer, Customer], key: str) -> None:
    _, zebra = both
    client = (staging if key == "heron-test" else service).client(key)
    before = stable(client, lists_of_api())
    found = []
    with neutralised() as switch:
        for path in lists_of_api():
            answer = client.get(path)
            found += foreign(answer, of_environment(key))
            if plain(answer) != before.get(path, plain(answer)):
                found.append(f"another answer: {path}")
        for operation in OPERATIONS:
            if "{" not in operation.path:
                continue
            for name in (*zebra.texts, *zebra.numbers):
                answer = client.request(
                    operation.method, named(operation.path, name), json=None if operation.method == "GET" else {}
                )
                found += foreign(answer, of_environment(key), name)
    assert found == []
    assert len(switch.rewritten) >= 8
    assert switch.failed == set()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("every_name", [False, pytest.param(True, marks=pytest.mark.long)])
def test_on_pages(service: Service, both: tuple[Customer, Customer], every_name: bool) -> None:
    """Asks each page for the newest things of its kind that are Zebra's; with `every_name` for anything of Zebra's, in some 1,800 requests."""
    heron, zebra = both
    before = stable(heron.admin, lists_of_pages())
    found = []
    with neutralised() as switch:
        for path in lists_of_pages():
            answer = heron.admin.get(path)
            # The audit log is of both environments, and the request log holds the paths that Heron itself has asked for.
            if "requests" not in path:
                found += foreign(answer, OF_ZEBRA if "audit" in path else of_environment("heron"))
            if plain(answer) != before.get(path, plain(answer)):
                found.append(f"another answer: {path}")
        for route in ROUTES:
            if route.method != "GET" or "{" not in route.path or route.path in LEFT_OUT:
                continue
            every = zebra.numbers if ":int}" in route.path else zebra.texts
            for name in every if every_name else things_of(service, route.path, "zebra")[:3] or every[:3]:
                answer = heron.admin.get(named(route.path, name))
                found += foreign(answer, of_environment("heron"), name)
    assert found == []
    assert len(switch.rewritten) >= 30
    assert switch.failed == set()


def things_of(service: Service, path: str, mark: str) -> list[str]:
    """What the path of a form can name of a customer's, the newest first."""
    parameter = re.findall(r"\{(\w+)", path)[0]
    query = next((query for begin, query in NAMED.items() if path.startswith(begin)), NAMED.get(parameter))
    found = service.sql(query, service.ids["customers"][mark]) if query else []
    return [str(thing) for (thing,) in reversed(found)]


def rows_of(service: Service, mark: str) -> dict[str, str]:
    """A digest of all rows of a customer, by table; not of when keys were last seen, which is written later."""
    tables = service.sql(
        """
        SELECT table_name FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
        WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND column_name = 'customer_id'
        """
    )
    whose = service.ids["customers"][mark]
    digest = """
        SELECT md5(string_agg(said, '' ORDER BY said))
        FROM {} AS t, LATERAL (SELECT (to_jsonb(t) - ARRAY['last_seen_at', 'last_seen_address'])::text) AS one (said) WHERE customer_id = $1
    """
    return {table: service.sql(digest.format(table), whose)[0][0] for (table,) in tables}


def test_forms_for_things_of_another_customer(service: Service, both: tuple[Customer, Customer]) -> None:
    """Each form is posted for what is another's, and says nothing of it and changes nothing."""
    heron, _ = both
    forms = [route.path for route in ROUTES if route.method == "POST" and "{" in route.path]
    posted = [(path, things_of(service, path, "zebra")[:2]) for path in forms if path not in LEFT_OUT]
    assert {path for path, things in posted if not things} <= {
        "/app/security/passkeys/{passkey:int}/remove",
        "/app/orders/views/{view:int}/remove",
    }
    before, found, statuses = rows_of(service, "zebra"), [], set()
    with neutralised() as switch:
        for path, things in posted:
            for thing in things:
                heron.admin.get("/app/contacts/new")  # a form is answered once
                there = named(path.replace("{number:int}", "1"), thing)
                answer = heron.admin.post(there, confirm="yes", name="Heron's", reason="Heron's")
                found += foreign(answer, OF_ZEBRA, thing)
                statuses.add((answer.status_code, path))
    assert found == []
    assert switch.failed == set()
    assert {one for one in statuses if one[0] not in {303, 400, 404, 422}} == set()
    assert {path for code, path in statuses if code != 404} <= {
        "/app/orders/{reference}/resend-chosen",  # without rows, which it asks for first
        "/app/people/{user:int}/role",  # without a role
        "/app/security/sessions/{session:int}/end",  # one that is over ends again
    }
    assert rows_of(service, "zebra") == before


def test_fields_of_forms_that_name_things_of_another_customer(
    service: Service, both: tuple[Customer, Customer]
) -> None:
    heron, _ = both

    def first(parameter: str, mark: str = "zebra") -> str:
        return things_of(service, f"{{{parameter}}}", mark)[-1]

    own = {"name": "Heron's", "account": first("account", "heron"), "template": first("template", "heron")}
    budget = {"name": "Heron's", "currency": "GBP", "period": "month", "limit": "9", "per_gift": ""}
    rule = {"name": "Heron's", "role": "member", "above": "", "currency": "GBP", "needed": "1", "days": "7"}
    days = {"occasion": "birthday", "weekend": "keep", "leap_day": "before", "zone": "Europe/London"}
    times = {"opens": "2030-01-01T09:00", "closes": "2030-02-01"}
    campaign = {"gifts": "1", "domains": "heron.example", **times}
    skipped = {"contact": first("contact"), "day": "2030-01-01", "skipped": "yes"}
    draft, gift = f"/app/send/{first('draft', 'heron')}", {"value": "10", "country": "GB"}
    machine = things_of(service, "/app/service-accounts/{account}", "heron")[0]
    wrapping = things_of(service, "/app/branding/wrappings/{key}", "zebra")[0]
    move = {"from": own["account"], "to": own["account"], "amount": "1"}
    forms = [
        ("/app/send/gift", "", {**gift, "template": first("template")}),
        ("/app/send/gift", "", {**gift, "product": str(service.ids["products"]["coffee"]), "draft": first("draft")}),
        (f"{draft}/contacts", "contact", {"contact": first("contact")}),
        (f"{draft}/message", "wrapping_key", {"wrapping_key": wrapping}),
        (f"{draft}/delivery", "account", {"when": "now", "account": first("account")}),
        ("/app/funding/top-ups", "account", {"account": first("account"), "amount": "5"}),
        ("/app/funding/transfers", "from", {**move, "from": first("account")}),
        ("/app/funding/transfers", "to", {**move, "to": first("account")}),
        (f"/app/service-accounts/{machine}/accounts", "", {"may_use": first("account")}),
        ("/app/automations/new", "template", {**own, **days, "template": first("template")}),
        ("/app/automations/new", "account", {**own, **days, "account": first("account")}),
        ("/app/automations/new", "group", {**own, **days, "group": first("group")}),
        ("/app/campaigns/new", "template", {**own, **campaign, "template": first("template")}),
        ("/app/campaigns/new", "account", {**own, **campaign, "account": first("account")}),
        ("/app/budgets", "of", {**budget, "of": f"account-{first('account')}"}),
        ("/app/budgets", "of", {**budget, "of": f"person-{first('user')}"}),
        ("/app/budgets", "of", {**budget, "of": "group", "who": first("user")}),
        ("/app/approvals/rules", "approver", {**rule, "approver": first("user")}),
        ("/app/approvals/rules", "account", {**rule, "account": first("account")}),
        (f"/app/automations/{first('automation', 'heron')}/skip", "", skipped),
    ]
    before = rows_of(service, "zebra")
    with neutralised() as switch:
        for path, wrong, fields in forms:
            heron.admin.get("/app/contacts/new")
            answer = heron.admin.post(path, **fields)
            assert answer.status_code == (422 if wrong else 404), (path, wrong, answer.text)
            assert foreign(answer, OF_ZEBRA) == []
            if wrong:
                assert f'id="{wrong}-error"' in answer.text, (path, wrong)
    assert switch.failed == set()
    assert rows_of(service, "zebra") == before


def test_on_pages_of_the_other_environment(staging: Service, both: tuple[Customer, Customer]) -> None:
    admin = signed_in(staging, "admin@heron.example")
    with neutralised() as switch:
        found = [
            one
            for path in lists_of_pages()
            if "audit" not in path and "requests" not in path
            for one in foreign(admin.get(path), of_environment("heron-test"))
        ]
    assert found == []
    assert switch.failed == set()


def test_for_recipients(service: Service, both: tuple[Customer, Customer]) -> None:
    """A recipient of Heron's claims a gift and sees it; a code of the other environment is not known."""
    heron, zebra = both
    with neutralised() as switch:
        recipient = Recipient(service)
        page = recipient.get(recipient.gift(heron.codes[1]))
        assert page.status_code == 200
        assert foreign(page, of_environment("heron")) == []
        elsewhere = Recipient(service).claim(zebra.codes[-1])
        assert foreign(elsewhere, ["zebrastaging"]) == []
        assert elsewhere.status_code in {403, 404}
    assert switch.rewritten
    assert switch.failed == set()


def test_for_visitors_of_campaigns(service: Service, staging: Service, both: tuple[Customer, Customer]) -> None:
    """A visitor of Heron's campaign gets a gift of Heron's; its code is none of Zebra's campaign, and no link is known in the other environment."""
    heron, zebra = (Visitor(service, token_of(service, mark)) for mark in ("heron", "zebra"))
    email = "visitor@heronlive.example"
    for visitor in (zebra, heron):
        assert visitor.ask(email).status_code == 303
    work_on_campaigns(service)
    with neutralised() as switch:
        for page in (heron.get(), heron.get("/code"), heron.type(code_of(service, email))):
            assert page.status_code < 400
            assert foreign(page, of_environment("heron")) == []
        refused = zebra.type(code_of(service, email))
        assert refused.status_code == 403
        assert Visitor(staging, heron.token).get().status_code == 404
    assert switch.rewritten
    assert switch.failed == set()
