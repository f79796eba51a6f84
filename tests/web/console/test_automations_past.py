"""The past gifts of an automation, and the orders that they lead to."""

from __future__ import annotations

from tests.automations.conftest import add_contact
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.sending import WORLD as SENDING
from tests.web.console.test_automations import in_days, set_one

BOT = "    service_accounts: [{key: bot, name: Bot}]\n"
WORLD = SENDING.replace("plan: starter", "plan: pro").replace(
    BOT, f"{BOT}    api_keys: [{{key: hr, service_account: bot, environment: production}}]\n"
)


def test_past_gifts_lead_to_the_orders_that_the_person_may_see(service: Service, ada: Browser, cem: Browser) -> None:
    add_contact(service, "Zoe", birthday=in_days(10))
    path = str(set_one(ada, service).headers["location"])
    order = service.send("gift", "coffee", account="bots", value=10, codeQuantity=1).json()["reference"]
    service.sql(
        """
        INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at,
            state, order_reference, ended_at)
        SELECT customer_id, 'production', $1, id, now(), now(), now(), now(), 'placed', $2, now() FROM contacts WHERE name = 'Zoe'
        """,
        int(path.rpartition("/")[2]),
        order,
    )
    assert [f"/app/orders/{order}" in browser.get(path).text for browser in (ada, cem)] == [True, False]
    assert "Zoe" in cem.text
