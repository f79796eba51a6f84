"""Two customers in both environments, with everything a customer can have, each marked with a word that stands nowhere else."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import httpx
from tests.campaigns.conftest import code_of
from tests.campaigns.conftest import work as work_on_campaigns
from tests.campaigns.test_pages import Visitor
from tests.catalogue.images import png
from tests.web.api.conftest import Service
from tests.web.claim.conftest import Recipient, form_of
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.orders import work

_BIRTHDAY = 10  # days from now, of a contact of each


def _customer(mark: str, value: int) -> str:
    name = mark.title()
    return f"""
  - key: {mark}
    name: {name} Ltd
    plan: enterprise
    funding: balance
    users:
      - {{email: admin@{mark}.example, name: {name} admin, role: admin}}
      - {{email: cem@{mark}.example, name: {name} member, role: member}}
    service_accounts:
      - {{key: {mark}-bot, name: {name} bot}}
    api_keys:
      - {{key: {mark}, service_account: {mark}-bot, environment: production}}
      - {{key: {mark}-test, service_account: {mark}-bot, environment: staging}}
    funding_accounts:
      - {{key: {mark}-gbp, name: {name}live float, master: true, currency: GBP, balance: {1_000 * value}.00}}
      - {{key: {mark}-bot-gbp, name: {name} pot, currency: GBP, balance: {10 * value}.00, service_accounts: [{mark}-bot]}}
      - {{key: {mark}-staging-gbp, name: {name}staging float, master: true, currency: GBP, environment: staging, balance: 500.00}}
    templates:
      - {{key: {mark}-hello, name: {name} hello, product: coffee, value: {value}, from_name: {name}, message: {name} says hello}}"""


WORLD = f"""
customers:{_customer("zebra", 25)}{_customer("heron", 10)}
products:
  - {{key: coffee, name: Coffee e-gift, digital: true, currency: GBP, countries: [GB], denominations: [5, 10, 25]}}
  - {{key: hamper, name: Hamper, digital: false, currency: GBP, cost: 35.00, postage: {{GB: 4.95}}, vat_percent: {{GB: 20}}}}
  - {{key: zebra-club, name: Zebra club, digital: true, currency: GBP, countries: [GB], denominations: [10], customers: [zebra]}}
  - {{key: heron-club, name: Heron club, digital: true, currency: GBP, countries: [GB], denominations: [10], customers: [heron]}}
collections:
  - {{key: treats, name: Treats, country: GB, currency: GBP, value_points: [10, 25], products: [coffee]}}
  - {{key: zebra-thanks, customer: zebra, name: Zebra thanks, country: GB, currency: GBP, value: 25, products: [coffee]}}
  - {{key: heron-thanks, customer: heron, name: Heron thanks, country: GB, currency: GBP, value: 25, products: [coffee]}}
"""


@dataclass
class Customer:
    """A customer's mark, somebody of it, and its things by what they are, each with all names it can be asked for by."""

    mark: str
    admin: Browser
    codes: list[dict[str, str]]
    texts: list[str]
    numbers: list[int]


def fill(service: Service, staging: Service, mark: str) -> Customer:
    """Has a customer do all it can do, in both environments."""
    admin = signed_in(service, f"admin@{mark}.example")
    codes: list[dict[str, str]] = []
    for place, environment, account in ((service, "live", f"{mark}-gbp"), (staging, "staging", f"{mark}-staging-gbp")):
        key = mark if place is service else f"{mark}-test"
        word = f"{mark}{environment}"
        texts: dict[str, Any] = {"message": f"{word} message", "fromName": f"{word} sender"}

        client = place.client(key)
        send = partial(_send, place, key, account, word)
        sam = {"email": f"sam@{word}.example", "name": f"{word} Sam", "quantity": 2}
        send(1, recipients=[sam], claimBy=f"{_in_days(30)}T12:00:00Z", reminderDays=[2], **texts)
        pat = {"email": f"pat@{word}.example", "name": f"{word} Pat"}
        send(4, recipients=[pat], message="Dear {name}", placeholders=True)
        codes += send(2, codeQuantity=2)["codes"]
        cancelled = send(3, recipients=[{"email": f"kim@{word}.example"}])["reference"]
        assert client.post(f"/orders/{cancelled}/cancel").status_code == 200
        _make_contact(client, word)
        hook = client.post(
            "/webhooks", json={"targetUrl": f"https://93.184.215.14/{word}", "event": "order.created"}
        ).json()["id"]
        service.sql(
            """
            WITH made AS (
                INSERT INTO deliveries (customer_id, subscription_id, event, sample, due_at, created_at)
                SELECT customer_id, id, 'order.created', convert_to($2, 'UTF8'), now(), now() FROM webhook_subscriptions WHERE id = $1
                RETURNING customer_id, id)
            INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms, answer)
            SELECT customer_id, id, 1, now(), 1, convert_to($2, 'UTF8') FROM made
            """,
            hook,
            f'{{"{word}": 1}}',
        )
    recipient = Recipient(service)
    gift = recipient.gift(codes[0])
    key = form_of(recipient.get(gift))["key"]
    assert recipient.post(f"{gift}/thank", key=key, note=f"{mark}live note").status_code == 303
    admin.get("/app/funding/top-ups/new")
    (account_id,) = service.sql("SELECT id FROM accounts WHERE key = $1", f"{mark}-gbp")[0]
    assert admin.post("/app/funding/top-ups", account=str(account_id), amount="77").status_code == 303
    budget = {"currency": "GBP", "period": "month", "limit": "900", "per_gift": ""}
    people = [str(id_) for (id_,) in service.sql("SELECT id FROM users WHERE email LIKE $1", f"%@{mark}.example")]
    for of in ({"of": f"account-{account_id}"}, {"of": "group", "who": people}):
        admin.get("/app/budgets")
        named = {"name": f"{mark} budget of {of['of']}"}
        assert admin.post("/app/budgets", **named, **budget, **of).status_code == 303
    (product,) = service.sql("SELECT id FROM products WHERE key = 'coffee'")[0]
    _define_field(admin, mark)
    admin.get(f"/app/send/gift?product={product}&country=GB")
    draft = (
        admin.post("/app/send/gift", product=str(product), country="GB", value="10")
        .headers["location"]
        .removesuffix("/recipients")
    )
    admin.get(f"{draft}/recipients")
    assert admin.post(f"{draft}/recipients", rows=f"email,name\nrow@{mark}.example,{mark} Row\n").status_code == 303
    _run_programmes(service, admin, mark, draft, account_id)
    work(service)
    return Customer(mark, admin, codes, *_names(service, mark))


def _define_field(admin: Browser, mark: str) -> None:
    admin.get("/app/contacts/fields")
    assert admin.post("/app/contacts/fields", name=f"{mark} field").status_code == 303


def _make_contact(client: httpx.Client, word: str) -> None:
    contact = {"email": f"friend@{word}.example", "name": f"{word} friend", "groups": [f"{word} group"]}
    contact["birthday"] = f"{_in_days(_BIRTHDAY):%m-%d}"
    made = client.post("/contacts", json={**contact, "externalId": f"{word}-1", "address": f"{word} street"})
    assert made.status_code == 201, made.text


def _run_programmes(service: Service, admin: Browser, mark: str, draft: str, account_id: int) -> None:
    _brand(admin, mark)
    _automate(service, admin, mark, account_id)
    _give(service, admin, mark, account_id)
    _ask(service, admin, mark, draft, account_id)


def _brand(admin: Browser, mark: str) -> None:
    admin.get("/app/branding")
    texts = {
        "sender_name": f"{mark} brand",
        "footer": f"{mark} footer",
        "subject": f"{mark} subject",
        "reply_to": f"reply@{mark}.example",
    }
    assert admin.post("/app/branding", colour="#17605b", **texts).status_code == 303
    admin.get("/app/branding")
    wrapping = {"name": f"{mark} paper", "paper": "#8a4210", "ribbon": "#f6c453", "pattern": "dots"}
    assert admin.upload("/app/branding/wrappings", png(), field="picture", **wrapping).status_code == 303


def _automate(service: Service, admin: Browser, mark: str, account_id: int) -> None:
    rule = {
        "name": f"{mark}live automation",
        "occasion": "birthday",
        "weekend": "keep",
        "leap_day": "before",
        "zone": "Europe/London",
    }
    admin.get("/app/automations/new")
    set_ = admin.post("/app/automations/new", template=str(_template(service, mark)), account=str(account_id), **rule)
    assert set_.status_code == 303, set_.text
    path = set_.headers["location"]
    admin.get(path)
    (friend,) = service.sql("SELECT id FROM contacts WHERE email = $1", f"friend@{mark}live.example")[0]
    skip = {"contact": str(friend), "day": f"{_in_days(_BIRTHDAY)}", "skipped": "yes"}
    assert admin.post(f"{path}/skip", **skip).status_code == 303


def _in_days(days: int) -> date:
    return (datetime.now(UTC) + timedelta(days=days)).date()


def _give(service: Service, admin: Browser, mark: str, account_id: int) -> None:
    """Has the administrator set a campaign and reserve its gifts, and a visitor take one."""
    now, word = datetime.now(UTC), f"{mark}live"
    rule = {"name": f"{word} campaign", "gifts": "3", "greeting": f"{word} greeting", "domains": f"{word}.example"}
    times = {"opens": f"{now - timedelta(days=1):%Y-%m-%dT%H:%M}", "closes": f"{now + timedelta(days=9):%Y-%m-%d}"}
    admin.get("/app/campaigns/new")
    of = {"template": str(_template(service, mark)), "account": str(account_id), "addresses": ""}
    review = admin.post("/app/campaigns/new", **rule, **times, **of).headers["location"]
    admin.get(review)
    placed = admin.post(review.replace("/review", "/place"))
    assert placed.status_code == 303, placed.text
    visitor = Visitor(service, token_of(service, mark))
    assert visitor.ask(f"visitor@{word}.example").status_code == 303
    work_on_campaigns(service)
    assert visitor.type(code_of(service, f"visitor@{word}.example")).status_code == 200


def token_of(service: Service, mark: str) -> str:
    """What names a customer's campaign in its link."""
    query = "SELECT token FROM campaigns g JOIN customers c ON c.id = g.customer_id WHERE c.key = $1"
    return str(service.sql(query, mark)[0][0])


def _template(service: Service, mark: str) -> int:
    query = "SELECT t.id FROM templates t JOIN customers c ON c.id = t.customer_id WHERE c.key = $1"
    return int(service.sql(query, mark)[0][0])


def _ask(service: Service, admin: Browser, mark: str, draft: str, account_id: int) -> None:
    """Has the administrator ask the member to approve a draft."""
    (member,) = service.sql("SELECT id FROM users WHERE email = $1", f"cem@{mark}.example")[0]
    admin.get("/app/approvals/rules")
    rule = {"name": f"{mark} rule", "role": "admin", "above": "", "currency": "GBP", "needed": "1", "days": "7"}
    assert admin.post("/app/approvals/rules", **rule, approver=str(member)).status_code == 303
    admin.get(f"{draft}/delivery")
    assert admin.post(f"{draft}/delivery", when="now", account=str(account_id), reference="").status_code == 303
    admin.get(f"{draft}/review")
    assert admin.post(f"{draft}/ask").status_code == 303


def _send(place: Service, key: str, account: str, word: str, number: int, **members: Any) -> Any:
    """Places an order, whose reference has the word and the number; what was answered."""
    told = {"value": 5, **members, "externalReference": f"{word}-{number}"}
    sent = place.send("gift", "coffee", key=key, account=account, **told)
    assert sent.status_code == 200, sent.text
    return sent.json()


def _names(service: Service, mark: str) -> tuple[list[str], list[int]]:
    """Whatever ids and names rows of the customer have in the database: texts, such as references, and numbers."""
    (customer_id,) = service.sql("SELECT id FROM customers WHERE key = $1", mark)[0]
    columns = service.sql(
        """
        SELECT table_name, column_name, data_type FROM information_schema.columns c
        WHERE table_schema = 'public' AND column_name IN ('id', 'reference', 'key')
          AND EXISTS (SELECT FROM information_schema.columns o WHERE o.table_name = c.table_name AND o.column_name = 'customer_id')
        """
    )
    texts, numbers = set(), {customer_id}
    for table, column, _ in columns:
        for (value,) in service.sql(f"SELECT {column} FROM {table} WHERE customer_id = $1", customer_id):
            if isinstance(value, int):
                numbers.add(value)
            elif value is not None:
                texts.add(str(value))
    return sorted(texts), sorted(numbers)
