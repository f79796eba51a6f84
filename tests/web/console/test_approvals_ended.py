"""Approvals of sends whose rules ended before anybody decided, and of sends beyond the limit of a budget for each gift."""

import re
from typing import Any

from tests.web.api.conftest import Service, on_database
from tests.web.console.approving import WORLD, as_before, asked, decided_as_seen, orders_of, set_rule, set_user, user_id
from tests.web.console.conftest import SignIn
from tests.web.console.sending import place

from largesse.approvals.service import expire_requests
from largesse.mail.people.writing import read_approval

__all__ = ["WORLD", "as_before"]


async def _expire(connection: Any) -> int:
    async with connection.transaction():
        return await expire_requests(connection)


def test_a_send_whose_rule_ended_and_that_was_sent_waits_for_nobody(service: Service, sign_in: SignIn) -> None:
    ada, bea, cem = (sign_in(f"{name}@acme.example") for name in ("ada", "bea", "cem"))
    set_rule(ada)
    reference = asked(cem, service)
    about, asks = f"/app/approvals/{reference}", "1 send waits for your approval"
    seen = bea.get(about).text
    assert asks in bea.read("/app")
    [rule] = service.sql("SELECT id FROM approval_rules")
    assert ada.submit("/app/approvals/rules", f"/app/approvals/rules/{rule['id']}/end").status_code == 303
    assert place(cem, f"/app/send/{reference}") == reference
    assert asks not in bea.read("/app")
    for decision in ("approve", "decline"):
        assert decided_as_seen(bea, seen, reference, decision).status_code == 303
        bea.sees(about, "This send no longer waits for approval", "State Sent Sent by Cem")
        assert 'name="decision"' not in bea.page.text
        seen = re.sub(r'name="token" value="[^"]+"', f'name="token" value="{bea.token}"', seen)
    assert len(orders_of(service, reference)) == 1
    service.sql("UPDATE approval_requests SET expires_at = now() - interval '1 second' WHERE id = $1", reference)
    on_database(service.database_url, _expire)
    acme = int(service.ids["customers"]["acme"])
    for name, kind in (("bea", "approval_asked"), ("cem", "approval_ended")):
        mailed = acme, user_id(service, name), kind, reference
        assert service.ask(lambda connection, mailed=mailed: read_approval(connection, *mailed)) is None
    assert service.findings() == []


def test_who_may_not_approve_any_more_is_not_mailed_that_a_send_waits(service: Service, sign_in: SignIn) -> None:
    ada, cem = sign_in("ada@acme.example"), sign_in("cem@acme.example")
    set_rule(ada)
    reference = asked(cem, service)
    set_user(service, "bea", "role = 'member'")
    about = [(int(service.ids["customers"]["acme"]), user_id(service, name)) for name in ("ada", "bea")]
    asks = [
        service.ask(lambda connection, of=of: read_approval(connection, *of, "approval_asked", reference))
        for of in about
    ]
    assert [one is not None for one in asks] == [True, False]


def test_a_limit_for_each_gift_is_named(service: Service, sign_in: SignIn) -> None:
    ada, cem = sign_in("ada@acme.example"), sign_in("cem@acme.example")
    ada.get("/app/budgets")
    of = f"person-{user_id(service, 'cem')}"
    ada.post("/app/budgets", name="Own: small", of=of, currency="GBP", period="month", limit="", per_gift="9")
    set_rule(ada, name="Beyond", above="", beyond_budget="yes")
    reference = asked(cem, service)
    for page in (cem.text, ada.read(f"/app/approvals/{reference}")):
        assert "A gift costs £10.00. The budget Own: small allows at most £9.00 for each." in page
