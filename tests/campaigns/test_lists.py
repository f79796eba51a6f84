"""Lists of addresses and domains, as people paste them into the form of a campaign."""

import pytest
from tests.drafts.conftest import finished

from largesse.campaigns.model import CampaignFault, read_domains, read_mailboxes


@pytest.mark.parametrize(
    "text",
    [
        "mailto:ada@x.com",
        "\u201cada@x.com\u201d",
        "ada@x.com.",
        "\u2022 ada@x.com",
        "1. ada@x.com",
        "ada@x.com<mailto:ada@x.com>",
        "Byron, Ada <ada@x.com>",
    ],
)
def test_what_copying_leaves_around_an_address_is_taken_off(text: str) -> None:
    assert finished(read_mailboxes(text)) == ("ada@x.com",)


def test_a_word_of_quotation_marks_takes_no_time() -> None:
    with pytest.raises(CampaignFault):
        finished(read_mailboxes("1" + '"' * 300_000 + "x"))


@pytest.mark.parametrize("address", ["o\u2019neil@x.com", "\uff4a@x.com", "ada@x,com", "ada@x.com|bo@x.com"])
def test_an_address_that_nobody_can_have_is_refused(address: str) -> None:
    """Its owner could never take part."""
    with pytest.raises(CampaignFault):
        finished(read_mailboxes(f"ada@x.com, {address}"))


@pytest.mark.parametrize("text", ["https://www.x.com/", "x.com.", "@x.com", "http://x.com"])
def test_a_domain_may_be_copied_from_a_browser(text: str) -> None:
    assert read_domains(text) == ("x.com",)
