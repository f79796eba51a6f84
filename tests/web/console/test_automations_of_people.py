"""Automations of people with other rights: whose past gifts and orders one may see, whose person may not send any more, and who may approve."""

from collections.abc import Callable

import pytest
from tests.automations.conftest import add_contact, add_group
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.sending import WORLD as SENDING
from tests.web.console.test_automations import approve, as_before, changed, in_days, set_one

__all__ = ["as_before", "changed"]

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


def test_an_automation_says_that_it_sends_nothing_once_its_person_may_not(
    service: Service, ada: Browser, cem: Browser
) -> None:
    path = set_one(cem, service, name="Anniversaries").headers["location"]
    said = "Cem may not send any more, so nothing is sent."
    assert said not in ada.read(path)
    [person] = service.sql("SELECT id FROM users WHERE name = 'Cem'")
    removing = f"/app/people/{person['id']}/remove"
    assert "The automation Anniversaries sends as this person" in ada.read(removing)
    ada.submit("/app", "/app/environment", environment="staging")
    assert "The automation Anniversaries (Live) sends as this person" in ada.read(removing), "who is removed in both"
    [template] = service.sql("SELECT template_id FROM automations WHERE name = 'Anniversaries'")
    deleting = ada.read(f"/app/templates/{template['template_id']}/remove")
    assert "Anniversaries (Live)" in deleting
    ada.submit("/app", "/app/environment", environment="production")
    service.sql("UPDATE users SET role = 'viewer' WHERE name = 'Cem'")
    assert said in ada.read(path)
    service.sql("UPDATE users SET is_active = false, role = 'member' WHERE name = 'Cem'")
    assert said in ada.read(path)
    assert set_one(ada, service, f"{path.rpartition('/')[2]}/edit", name="Anniversaries").status_code == 303
    assert said not in ada.read(path)


def test_nobody_needs_an_approval_that_nobody_could_give(service: Service, ada: Browser, cem: Browser) -> None:
    said = "nobody else in your company is an administrator who could approve it"
    refused = set_one(ada, service, asks_approval="yes")  # she is the only administrator
    assert refused.status_code == 422
    assert said in refused.text
    assert service.sql("SELECT FROM automations") == []
    service.sql("UPDATE users SET role = 'admin' WHERE name = 'Cem'")
    path = str(set_one(ada, service, asks_approval="yes").headers["location"])
    assert said not in ada.read(path)
    service.sql("UPDATE users SET role = 'member' WHERE name = 'Cem'")
    ada.sees(path, said, "Needs approval")
    assert "Nobody may approve the automation Birthdays" in ada.read("/app")
    assert "Nobody may approve" not in cem.read("/app"), "neither theirs nor their task"


def test_an_automation_is_approved_at_the_price_that_its_page_shows(
    service: Service, ada: Browser, cem: Browser
) -> None:
    hamper = {"product": str(service.ids["products"]["hamper"]), "country": "GB", "wrapping_key": "stars"}
    ada.get(f"/app/templates/new?product={hamper['product']}&country=GB")
    template = str(ada.post("/app/templates", **hamper, name="Hamper").headers["location"]).rpartition("/")[2]
    for page in ("automations", "campaigns"):
        assert "Hamper (£52.14)" in ada.read(f"/app/{page}/new")
    ada.sees("/app/templates", "£52.14")
    path = str(set_one(cem, service, asks_approval="yes", template=template).headers["location"])
    assert "Autumn hamper, £52.14" in ada.read(path), "with postage and VAT"
    approve(ada, path)
    assert service.sql("SELECT approved_minor FROM automations")[0][0] == 5214
    service.sql(
        "UPDATE automations SET approved_by = NULL, approved_at = NULL, approved_minor = 5000"
    )  # as if the price had risen
    ada.sees(path, "A gift costs £52.14 now. It was approved at £50.00.", "Needs approval")
    approve(ada, path)
    assert "It was approved at" not in ada.read(path)


@pytest.mark.parametrize("page", ["automations", "campaigns"])
def test_no_template_is_chosen_before_the_person_chooses_one(service: Service, ada: Browser, page: str) -> None:
    nothing = '<option value="">Choose a template</option>'
    assert nothing in ada.get(f"/app/{page}/new").text
    refused = ada.post(f"/app/{page}/new", name="Birthdays", template="", occasion="birthday")
    assert refused.status_code == 422
    assert 'id="template-error">Choose a template from the list.<' in refused.text
    assert nothing in refused.text
    assert nothing not in ada.get(f"{set_one(ada, service).headers['location']}/edit").text


def test_a_second_automation_for_the_same_day_of_the_same_contacts_is_said(service: Service, ada: Browser) -> None:
    said, other = "Contacts get a second gift for the same day from this automation: {}".format, {"name": "Others"}
    zoe = add_contact(service, "Zoe", birthday=in_days(10))
    sales, support = (add_group(service, zoe, name=name) for name in ("Sales", "Support"))
    first = str(set_one(ada, service, group=str(sales)).headers["location"])
    second = str(set_one(ada, service, group=str(support), **other).headers["location"])
    assert said("Others") in ada.read(first)
    assert said("Birthdays") in ada.read(second)
    edit = f"{second.rpartition('/')[2]}/edit"
    set_one(ada, service, edit, **other)
    assert said("Birthdays") in ada.read(second), "all contacts are those of every group"
    set_one(ada, service, edit, occasion="anniversary", **other)
    assert said("Birthdays") not in ada.read(second), "another occasion"
    set_one(ada, service, edit, group=str(add_group(service, add_contact(service, "Bo"), name="London")), **other)
    assert said("Birthdays") not in ada.read(second), "no contact is in both groups"
    set_one(ada, service, edit, group=str(sales), **other)
    assert said("Others") in ada.read(first)
    ada.submit(second, f"{second}/pause")
    assert said("Others") not in ada.read(first), "while it is paused"


def test_home_and_the_list_of_templates_say_that_a_gift_has_another_price(
    service: Service, ada: Browser, sign_in: SignIn, changed: Callable[..., None]
) -> None:
    path, said = str(set_one(ada, service).headers["location"]), "1 automation cannot send its gift any more"
    assert said not in ada.read("/app")
    assert "Not available" not in ada.read("/app/templates")
    changed("value_minor = 700")
    assert path in ada.get("/app").text
    ada.says(said)
    ada.sees("/app/templates", "Not available")
    assert said not in sign_in("fin@acme.example").read("/app"), "who sees no automations"
    ada.submit(path, f"{path}/pause")
    assert said not in ada.read("/app")
