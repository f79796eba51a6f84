"""The previews of a draft: the mail and the claim page, as its first recipient will see them."""

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.gifts import PICTURE, WORLD, ada, with_a_picture
from tests.web.console.sending import begin, browser_text, ready

__all__ = ["WORLD", "ada", "with_a_picture"]


@pytest.fixture
def path(service: Service, ada: Browser) -> str:
    """A draft with a message, a wrapping and a claim-by date; its first recipient is Zoë."""
    path = ready(ada, service)
    ada.submit(f"{path}/message", wrapping_key="confetti", from_name="Acme", message="Thanks!", then="look")
    ada.get(f"{path}/delivery")
    account = str(service.ids["funding_accounts"]["gbp"])
    ada.post(f"{path}/delivery", when="now", account=account, reference="", claim_by="2035-06-20")
    return path


def read(browser: Browser, path: str) -> tuple[str, str]:
    """A preview: its page, and the text in it."""
    page = browser.get(path)
    assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
    return page.text, browser_text(page.text.partition("<body")[2])


def test_both_show_the_gift_to_the_first_recipient(ada: Browser, path: str) -> None:
    mail, text = read(ada, f"{path}/mail")
    assert "A gift from Acme Hello Zoë , Thanks! Acme has sent you: Coffee House e-gift £10.00 Hot &amp; fresh." in text
    assert "Claim it by 20 June 2035." in text
    assert "Your voucher appears" in text
    assert f'src="/pictures/{PICTURE.name}"' in mail, "under whatever host name the page is open"
    assert "#b93c22" in mail, "the colour of the wrapping"
    claim, text = read(ada, f"{path}/claim")
    assert "Zoë , Acme sent you a gift" in text
    assert "Claim it by 20 June 2035." in text
    assert 'class="theme-confetti"' in claim


def test_both_are_in_the_language_that_is_chosen(ada: Browser, path: str) -> None:
    assert "Ein Geschenk von Acme Guten Tag Zoë" in read(ada, f"{path}/mail?lang=de")[1]
    assert "Zoë , ein Geschenk für Sie von Acme" in read(ada, f"{path}/claim?lang=de")[1]
    assert "Hello Zoë" in read(ada, f"{path}/mail?lang=xx")[1]


def test_a_parcel_has_no_price_and_a_collection_is_chosen_from(service: Service, ada: Browser) -> None:
    text = read(ada, f"{begin(ada, service, gift='hamper', value='')}/mail")[1]
    assert "Autumn hamper Jam and more." in text
    assert "Tell us where to send it." in text
    assert "£" not in text
    treats = str(service.ids["collections"]["treats"])
    ada.get(f"/app/send/gift?collection={treats}")
    answer = ada.post("/app/send/gift", collection=treats, value="25.00")
    path = answer.headers["location"].removesuffix("/recipients")
    text = read(ada, f"{path}/mail")[1]
    assert "£25.00" in text
    assert "Choose your gift" in text


def test_a_message_that_is_too_long_is_kept_whole_with_its_length(service: Service, ada: Browser) -> None:
    path, message = ready(ada, service), "x" * 1400
    page = ada.get(f"{path}/message").text
    assert "maxlength" not in page[page.index("<textarea") :].partition(">")[0], "browsers cut the end off in silence"
    refused = ada.post(f"{path}/message", wrapping_key="plain", message=message, then="go")
    assert refused.status_code == 422
    assert message in refused.text
    ada.page = refused
    ada.says("This has 1,400 characters. At most 256 are allowed.")
