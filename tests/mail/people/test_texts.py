"""The mail to people who sign in is said in every language."""

from datetime import UTC, datetime, timedelta
from email import message_from_bytes

import pytest
from babel.messages.pofile import read_po
from jinja2.ext import babel_extract
from markupsafe import escape
from msgspec.structs import replace

from largesse.base.i18n.languages import LANGUAGES
from largesse.mail.people import writing
from largesse.notes.model import Note


@pytest.mark.parametrize("tag", [tag for tag in LANGUAGES if tag != "en"])
def test_a_catalogue_says_everything_and_nothing_else(tag: str) -> None:
    with (writing.TEMPLATES / "mail.txt").open("rb") as file:
        found = babel_extract(file, ("gettext", "ngettext"), (), {"trimmed": "true"})
        texts = {text if isinstance(text, str) else text[:2] for _, _, text, _ in found}
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
    "approval_asked",
    "approval_ended",
    "automation_asked",
    "thank_you",
)
LINK = "https://gifts.example.com/app/link/abc"


def a_people_mail(kind: str, tag: str = "en") -> writing.PeopleMail:
    low = writing.LowBalance("Acme & Co float", "staging", "GBP", 999, 10_000) if kind == "low_balance" else None
    at = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    approval = writing.AskedApproval(
        "0WB", "staging", "declined", 999, "GBP", "Tea & Co", 2, at, "Cem & Co", is_sent=False
    )
    return writing.PeopleMail(
        7,
        kind,
        "ada@acme.example",
        tag,
        "Acme & Co",
        "203.0.113.9",
        "Mozilla/5.0",
        at,
        1,
        LINK,
        low,
        None,
        "app_on",
        approval,
        writing.ThankYou(
            "0WB", "staging", [Note(1, "0WB", 1, name, None, "A & B\n\nC", at) for name in ("Zo & Co", None)]
        ),
        writing.AskedAutomation(3, "Birthdays & Co", "staging", "Cem & Co"),
    )


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
    for part in said:
        assert all(escape(line.strip()) in html for line in part.splitlines())


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
    mail = a_people_mail("approval_ended")
    assert mail.approval is not None
    shown, text, _ = writing.show(replace(mail, approval=replace(mail.approval, state=state, is_sent=is_sent)))
    assert shown.endswith(subject)
    assert said in text


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
