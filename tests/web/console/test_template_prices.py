"""Templates whose gift has another price than the saved one: what changed is shown, and one click saves the price that was shown."""

import re
from collections.abc import Iterator

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.gifts import WORLD, ada, made, send
from tests.web.console.sending import quote_in

__all__ = ["WORLD", "ada"]

HAMPER, CINEMA = "cost_minor = 1500", "denominations_minor = '{1250}'"


@pytest.fixture(autouse=True)
def old_prices(service: Service) -> Iterator[None]:
    yield
    service.sql(f"UPDATE products SET {HAMPER} WHERE key = 'hamper'")
    service.sql(f"UPDATE products SET {CINEMA} WHERE key = 'cinema'")


def parcel(service: Service, browser: Browser) -> int:
    return made(service, browser, product=str(service.ids["products"]["hamper"]), value="", name="Harvest")


def seen_in(browser: Browser) -> str:
    [seen] = re.findall(r'name="seen" value="([^"]+)"', browser.page.text)
    return str(seen)


def saved(service: Service, template: int) -> int:
    return int(service.sql("SELECT value_minor FROM templates WHERE id = $1", template)[0][0])


def test_a_parcels_new_price_is_shown_and_saved_with_one_click(service: Service, ada: Browser) -> None:
    template = parcel(service, ada)
    service.sql("UPDATE products SET cost_minor = 1800 WHERE key = 'hamper'")
    assert send(service, "template", template).status_code == 400
    assert "New price" in ada.read("/app/templates")
    ada.sees(
        f"/app/templates/{template}",
        "When this template was saved, its gift cost £15.00 without postage and VAT. Now it costs £18.00, and £20.00 with them.",
        "Use today's price: £20.00",
    )
    answer = ada.post(f"/app/templates/{template}/price", seen=seen_in(ada))
    assert answer.headers["location"] == f"/app/templates/{template}"
    assert "The template has today's price." in ada.read(f"/app/templates/{template}")
    assert "The price has changed" not in ada.text
    assert saved(service, template) == 1800
    assert send(service, "template", template).json()["totalCost"] == 20.0


def test_a_price_that_changed_again_is_not_saved(service: Service, ada: Browser) -> None:
    template = parcel(service, ada)
    service.sql("UPDATE products SET cost_minor = 1800 WHERE key = 'hamper'")
    ada.get(f"/app/templates/{template}")
    seen = seen_in(ada)
    service.sql("UPDATE products SET cost_minor = 1900 WHERE key = 'hamper'")
    assert ada.post(f"/app/templates/{template}/price", seen=seen).status_code == 303
    assert "The price has changed again since you saw it. Nothing was saved" in ada.read(f"/app/templates/{template}")
    assert "Use today's price: £21.00" in ada.text
    assert saved(service, template) == 1500


@pytest.mark.parametrize(
    ("change", "total"), [("postage_minor = '{\"GB\": 300}'", "18.00"), ("vat_percent = '{\"GB\": 10}'", "18.70")]
)
def test_after_a_change_of_postage_or_vat_alone_what_is_charged_is_what_was_shown(
    service: Service, ada: Browser, change: str, total: str
) -> None:
    template = parcel(service, ada)
    ada.get(f"/app/send/gift?template={template}")
    path = ada.post("/app/send/gift", template=str(template)).headers["location"].removesuffix("/recipients")
    ada.submit(f"{path}/recipients", rows="email\nzoe@example.com\n")
    ada.get(f"{path}/delivery")
    ada.post(f"{path}/delivery", when="now", account=str(service.ids["funding_accounts"]["gbp"]))
    ada.sees(f"{path}/review", "Total £17.00")
    quote, before = quote_in(ada), service.balance("gbp")
    [old] = service.sql("SELECT postage_minor, vat_percent FROM products WHERE key = 'hamper'")
    service.sql(f"UPDATE products SET {change} WHERE key = 'hamper'")
    try:
        ada.page = ada.post(f"{path}/place", quote=quote)
        assert (ada.page.status_code, service.balance("gbp")) == (409, before)
        ada.says(f"Total £{total}", f"Send 1 gift for £{total}")
        assert ada.post(f"{path}/place", quote=quote_in(ada)).status_code == 303
        assert service.balance("gbp") == pytest.approx(before - float(total))
    finally:
        service.sql("UPDATE products SET postage_minor = $1, vat_percent = $2 WHERE key = 'hamper'", *old)


def test_a_send_goes_on_once_the_template_has_todays_price(service: Service, ada: Browser) -> None:
    template = parcel(service, ada)
    assert "Autumn hamper, £17.00" in ada.read(f"/app/send/gift?template={template}")
    path = ada.post("/app/send/gift", template=str(template)).headers["location"].removesuffix("/recipients")
    draft = path.rpartition("/")[2]
    ada.submit(f"{path}/recipients", rows="email\nzoe@example.com\n")
    ada.get(f"{path}/delivery")
    ada.post(f"{path}/delivery", when="now", account=str(service.ids["funding_accounts"]["gbp"]))
    ada.get(f"{path}/review")
    quote = quote_in(ada)
    service.sql("UPDATE products SET cost_minor = 1800 WHERE key = 'hamper'")
    before = service.balance("gbp")
    assert ada.post(f"{path}/place", quote=quote).status_code == 409
    assert service.balance("gbp") == before
    assert "Use today's price: £20.00" in ada.read(f"{path}/review")
    here = f"/app/send/gift?template={template}&draft={draft}"
    answer = ada.post(f"/app/templates/{template}/price", seen=seen_in(ada), sends="1", draft=draft)
    assert answer.headers["location"] == here
    assert "Autumn hamper, £20.00" in ada.read(here)
    ada.get(f"{path}/review")
    assert ada.post(f"{path}/place", quote=quote_in(ada)).status_code == 303
    assert service.balance("gbp") == before - 20


def test_the_send_form_shows_the_new_price_instead_of_its_button(service: Service, ada: Browser) -> None:
    template = made(service, ada, product=str(service.ids["products"]["cinema"]), value="", name="Film")
    service.sql("UPDATE products SET denominations_minor = '{1400}' WHERE key = 'cinema'")
    ada.sees(
        f"/app/send/gift?template={template}",
        "When this template was saved, its gift cost £12.50. Now it costs £14.00. It cannot be sent until the template has today's price.",
        "Use today's price: £14.00",
    )
    assert "Next: recipients" not in ada.text


def test_a_gift_that_can_no_longer_be_sent_has_no_new_price(service: Service, ada: Browser) -> None:
    template = parcel(service, ada)
    service.sql("UPDATE products SET cost_minor = 1800, active = false WHERE key = 'hamper'")
    try:
        assert "Use today" not in ada.read(f"/app/templates/{template}")
        assert "The gift cannot be sent any more." in ada.text
        assert ada.post(f"/app/templates/{template}/price", seen="1800/2000").status_code == 303
    finally:
        service.sql("UPDATE products SET active = true WHERE key = 'hamper'")
    assert saved(service, template) == 1500
