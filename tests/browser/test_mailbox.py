"""The captured mailbox as somebody trying the demo meets it: from the list to the message to the gift."""

from typing import Any

import pytest
from tests.browser.conftest import Visits


@pytest.mark.slow
@pytest.mark.parametrize(("window", "scheme"), [("phone", "light"), ("desktop", "dark")])
def test_from_the_mail_to_the_gift(demo: Any, visit: Visits, window: str, scheme: str) -> None:
    body = {
        "productId": demo.id_of("/products?limit=200", "Coffee House e-gift"),
        "accountId": demo.id_of("/funding-accounts", "Acme float"),
        "value": 10,
        "recipients": [{"email": f"{window}@example.com", "name": "Zoë"}],
        "fromName": "The People Team",
        "wrappingKey": "confetti",
        "message": "Three years already!",
    }
    demo.call("POST", "/send/gift", json=body)
    one = visit(window, scheme, name="mailbox")
    page = one.page
    one.open(f"{demo.url}/mailbox")
    row = page.get_by_role("link", name=f"{window}@example.com")
    for _ in range(100):  # the mail is captured by a worker, in its own time
        if row.count():
            break
        page.wait_for_timeout(100)
        page.reload()
    one.check("list")
    row.first.click()
    frame = page.frame_locator("iframe")
    frame.get_by_role("heading", name="A gift from The People Team").wait_for()
    one.check("message")
    with page.context.expect_page() as opened:
        frame.get_by_role("link", name="Open your gift").click()
    gift = opened.value
    gift.wait_for_load_state()
    assert gift.url.startswith(f"{demo.url}/claim/")
    assert gift.get_by_role("heading").first.inner_text() == "Zoë, The People Team sent you a gift"
    assert gift.get_by_label("PIN").is_visible()
    one.open(page.get_by_role("link", name="The HTML part alone").evaluate("link => link.href"))
    one.picture("html")
    assert one.said == []
