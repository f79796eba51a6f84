"""The mail to people who sign in is said in every language."""

from datetime import UTC, datetime, timedelta
from email import message_from_bytes

import pytest
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po
from jinja2.ext import babel_extract
from markupsafe import escape
from msgspec.structs import replace

from largesse.base.i18n.languages import LANGUAGES
from largesse.mail.people import automation_words, writing
from largesse.notes.model import Note


@pytest.mark.parametrize("tag", [tag for tag in LANGUAGES if tag != "en"])
def test_a_catalogue_says_everything_and_nothing_else(tag: str) -> None:
    with (writing.TEMPLATES / "mail.txt").open("rb") as file:
        found = babel_extract(file, ("gettext", "ngettext"), (), {"trimmed": "true"})
        texts = {text if isinstance(text, str) else text[:2] for _, _, text, _ in found}
    # The web application says these, too.
    texts |= {text for _, text, _, _ in extract_from_file("python", automation_words.__file__, {"text": None})}
    with (writing.CATALOGUES / f"{tag}.po").open("rb") as file:
        said = {message.id: message.string for message in read_po(file, locale=tag) if message.id}
    assert said.keys() == texts
    assert all(all(one) if isinstance(one, tuple) else one for one in said.values())


KINDS = (
    "invitation",
    "reset",
    "new_device",
    "second_step",
    "low_balance",
    "credited",
    "approval_asked",
    "approval_ended",
    "automation_asked",
    "automation_refused",
    "thank_you",
)
LINK = "https://gifts.example.com/app/link/abc"


def a_people_mail(kind: str, tag: str = "en", **changes: object) -> writing.PeopleMail:
    at = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    account = {"account": "Acme & Co float", "currency": "GBP"}
    asked = {"state": "declined", "total_minor": 999, "currency": "GBP", "gift_name": "Tea & Co", "code_count": 2}
    asked |= {"expires_at": at, "requester": "Cem & Co", "is_sent": False}
    reasons = [
        {"reason": "balance", "is_failed": False, "count": 1201, "until": at},
        {"reason": "per_gift:GBP:500:Tea & Co", "is_failed": False, "count": 1, "until": at},
        {"reason": "not_approved", "is_failed": True, "count": 1, "until": None},
        {"reason": None, "is_failed": False, "count": 1, "until": None},
    ]
    notes = [Note(1, "0WB", 1, name, None, "A & B\n\nC", at) for name in ("Zo & Co", None)]
    abouts: dict[str, dict[str, object]] = {
        "low_balance": {**account, "balance_minor": 999, "below_minor": 10_000},
        "credited": {**account, "balance_minor": 12_345, "credited_minor": 10_000},
        "approval_asked": asked,
        "approval_ended": asked,
        "automation_asked": {"name": "Birthdays & Co", "requester": "Cem & Co"},
        "automation_refused": {"name": "Birthdays & Co", "count": 1204, "gifts": reasons},
        "thank_you": {"reference": "0WB", "notes": notes},
    }
    about = {"environment": "staging"} | abouts[kind] | changes if kind in abouts else None
    known = (
        "ada@acme.example",
        tag,
        "Acme & Co",
        "203.0.113.9",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0.0.0 Safari/537.36",
    )
    return writing.PeopleMail(7, kind, *known, at, 1, LINK, about, None, "app_on")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tag", LANGUAGES)
def test_the_html_says_what_the_text_says_with_a_button(tag: str, kind: str) -> None:
    subject, text, html = writing.show(a_people_mail(kind, tag))
    said = [part for part in text.split("\n\n") if part.strip()]
    assert [part.strip() for part in said].count(LINK) == 1, (
        "the link is a paragraph of its own, which the HTML makes a button"
    )
    assert html.count(f'href="{LINK}"') == 1
    assert f'<html lang="{tag}"' in html
    assert f"<title>{escape(subject)}</title>" in html
    assert "&gt; " not in html  # a note stands in a box there
    assert "Mozilla" not in text
    for part in said:
        assert all(escape(line.strip().removeprefix("> ")) in html for line in part.splitlines())


@pytest.mark.parametrize(
    ("state", "is_sent", "subject", "said"),
    [
        ("approved", True, "was approved", "the order was placed."),
        ("approved", False, "was approved", "the order was not placed yet."),
        ("declined", False, "was declined", "nothing was sent or charged."),
        ("expired", False, "was not approved in time", "nothing was sent or charged."),
    ],
)
def test_what_became_of_an_approval_is_said(state: str, is_sent: bool, subject: str, said: str) -> None:
    shown, text, _ = writing.show(a_people_mail("approval_ended", state=state, is_sent=is_sent))
    assert shown.endswith(subject)
    assert said in text
    assert "in test mode" in text


def test_the_mail_about_refused_gifts_says_why_how_many_and_until_when() -> None:
    subject, text, _ = writing.show(a_people_mail("automation_refused"))
    assert subject == "1,204 gifts of “Birthdays & Co” were not sent"
    for said in (
        "1,201 gifts were refused. The account's balance was too low. They are tried again every hour, the first until 2 January 2030.",
        "1 gift was refused. The budget Tea & Co allows at most £5.00 for a gift. It is tried again every hour until 2 January 2030.",
        "1 gift was refused and is not tried again. Nobody approved the automation in time.",
        "1 gift was missed, as the service was down for three days.",
    ):
        assert said in text
    assert (
        "Das Budget Tea & Co erlaubt höchstens 5,00\xa0£ je Geschenk."
        in writing.show(a_people_mail("automation_refused", "de"))[1]
    )


def test_a_mail_has_one_id_and_shares_it_with_no_other_installation() -> None:
    mail = a_people_mail("invitation")
    ids = [
        message_from_bytes(writing.write(one, "gifts@example.com", at))["Message-ID"]
        for one, at in (
            (mail, mail.created_at),
            (mail, mail.created_at + timedelta(hours=1)),
            (replace(mail, created_at=mail.created_at + timedelta(seconds=1)), mail.created_at),
        )
    ]
    assert ids[0] == ids[1] != ids[2]
