import csv
import email
import email.policy
import io
import re
from email.message import EmailMessage
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.mail.conftest import text_of

from largesse.base.email import to_dial
from largesse.base.i18n.languages import LANGUAGES
from largesse.catalogue.model import Details
from largesse.mail import mime
from largesse.mail.letter import CHOICE, CODES_FILE, PARCEL, SHOWN_CODES, VOUCHER, Letter, LetterCode, message_id, write
from largesse.mail.rendering import THEMES, theme
from largesse.orders.options import ALIASES, WRAPPINGS
from largesse.web.claim import rendering

CODE = LetterCode("0000-1111-2222-3333-4", "012345", "https://gifts.example.com/claim/abc")
HOSTILE = "<script>alert(1)</script>\r\nBcc: victim@example.com\r\n\r\n\"'&{{ 7*7 }}"


def a_letter(**changes: object) -> Letter:
    values: dict[str, object] = {
        "kind": "gift", "reference": "0000AAAABBBBCCCCDDDD", "edition": 0, "environment": "production", "language": LANGUAGES["en"], "email": "sam@example.com",
        "name": "Sam", "sender": "Ada", "message": "Well done!", "wrapping_key": "default",
        "gift": "Coffee House e-gift", "comes_as": VOUCHER, "value_minor": 1000, "currency": "GBP", "expiry_days": None, "recipients": 1,
        "codes": [CODE],
    }  # fmt: skip
    return Letter(**{**values, **changes})  # type: ignore[arg-type]


def parse(letter: Letter, mail_from: str = "Largesse Gifts <gifts@example.com>") -> EmailMessage:
    raw = write(letter, mail_from, at=1_900_000_000)
    assert all(len(line) <= 998 for line in raw.split(b"\r\n"))
    assert b"\n" not in raw.replace(b"\r\n", b"")
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert not message.defects
    assert not any(header.defects for header in message.values())
    return message


def bodies(message: EmailMessage) -> tuple[str, str]:
    html = message.get_body(("html",))
    assert html is not None
    shown = re.sub(r"&#(\d{3,7});", lambda found: chr(int(found[1])), html.get_content())
    return shown.replace("\r\n", "\n"), text_of(message).replace("\r\n", "\n")


class Seen(HTMLParser):
    """What a mail client would see: the tags, the links, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str | None] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_letter_says_who_sent_what_and_how_to_get_it() -> None:
    message = parse(a_letter(expiry_days=90))
    assert message["From"] == "Ada via Largesse Gifts <gifts@example.com>"
    assert message["To"] == "Sam <sam@example.com>"
    assert message["Subject"] == "Ada sent you a gift"
    assert message["Date"].datetime.timestamp() == 1_900_000_000
    assert "List-Unsubscribe" not in message
    html, text = bodies(message)
    seen = Seen(html)
    assert seen.links == [f"{CODE.link}#pin={CODE.pin}"], "the PIN stands where no browser sends it"
    for words in (text, seen.text):
        for word in ("Sam", "Ada", "Well done!", "Coffee House e-gift", "£10.00", CODE.code, CODE.pin, "90 days"):
            assert word in words
    assert CODE.link in text


def test_every_code_of_a_recipient_is_in_the_one_letter() -> None:
    codes = [LetterCode(f"code-{n}", f"{n:06}", f"https://gifts.example.com/claim/{n}") for n in range(1000)]
    message = parse(a_letter(codes=codes))
    html, text = bodies(message)
    assert message["Subject"] == "Ada sent you gifts"
    assert Seen(html).links == [code.link_with_pin for code in codes[:SHOWN_CODES]]
    assert "All of them are in the attached file codes.csv. These are the first 25:" in html
    assert all(code.link_with_pin in text and code.code in text and code.pin in text for code in codes)
    [file] = message.iter_attachments()
    assert (file.get_filename(), file.get_content_type()) == (CODES_FILE, "text/csv")
    rows = list(csv.DictReader(io.StringIO(file.get_content())))
    assert [(row["code"], row["pin"].replace("-", ""), row["link"]) for row in rows] == [
        (code.code, code.pin, code.link_with_pin) for code in codes
    ]
    [file] = parse(a_letter(codes=codes[:26], language=LANGUAGES["de"])).iter_attachments()
    assert file.get_content().startswith("code;pin;link\r\ncode-0;000-000;")
    assert parse(a_letter(codes=codes[:25])).get_content_type() == "multipart/alternative"


def test_what_the_caller_wrote_is_text_and_never_markup_or_a_header() -> None:
    plain = Seen(bodies(parse(a_letter()))[0])
    message = parse(a_letter(name=HOSTILE, sender=HOSTILE, message=HOSTILE, gift=HOSTILE, wrapping_key=HOSTILE))
    html, text = bodies(message)
    seen = Seen(html)
    assert set(seen.tags) == set(plain.tags)
    assert seen.links == plain.links
    assert "<script>alert(1)</script>" in seen.text
    assert "{{ 7*7 }}" in text
    assert message["Bcc"] is None
    assert len(message.keys()) == len(parse(a_letter()).keys())


def test_no_line_looks_like_the_start_of_another_message_in_a_mailbox() -> None:
    told = "From here on\nFrom " + "now " * 40
    letter = a_letter(message=told, details=Details(told))
    raw = write(letter, "gifts@example.com", at=0)
    assert b"\nFrom " not in raw
    text = raw.split(b"\r\n\r\n", 2)[2].split(b"\r\n--")[0]
    assert max(len(line) for line in text.split(b"\r\n")) <= 76
    assert told.strip() in bodies(parse(letter))[1], "in the description of the gift"


def test_line_breaks_of_the_message_are_kept() -> None:
    html, text = bodies(parse(a_letter(message="one\r\ntwo\rthree\nfour")))
    assert "one<br>two<br>three<br>four" in html
    assert "> one\n> two\n> three\n> four\n" in text


def test_without_sender_name_message_and_value_nothing_is_missing() -> None:
    message = parse(a_letter(sender=None, name=None, message=None, value_minor=None))
    assert message["Subject"] == "There is a gift for you"
    assert message["To"] == "sam@example.com"
    for words in bodies(message):
        assert "None" not in words
        assert "Hello," in words


@pytest.mark.parametrize("tag", LANGUAGES)
@pytest.mark.parametrize("kind", ["gift", "voucher_ready", "shipped", "shipped_2", "returned", "returned_2"])
def test_a_letter_says_the_same_in_every_language(tag: str, kind: str) -> None:
    message = parse(a_letter(language=LANGUAGES[tag], kind=kind, carrier="DHL", tracking_number="AB1", expiry_days=9))
    assert message["Content-Language"] == tag
    html, text = bodies(message)
    assert f'<html lang="{tag}" dir="ltr"' in html
    seen = Seen(html)
    assert seen.links == [CODE.link_with_pin if kind == "gift" else CODE.link]
    wanted = {
        "gift": ["Sam", "Ada", "Well done!", CODE.code, CODE.pin, "Coffee House e-gift", "9"],
        "voucher_ready": ["Sam", "Coffee House e-gift"],
        "shipped": ["Sam", "Coffee House e-gift", "DHL", "AB1"],
        "shipped_2": ["Sam", "Coffee House e-gift", "DHL", "AB1"],
        "returned": ["Sam", "Coffee House e-gift"],
        "returned_2": ["Sam", "Coffee House e-gift"],
    }
    for words in (seen.text, text):
        assert [word for word in wanted[kind] if word not in words] == []
    said = set(re.findall(r"\w+", seen.text.replace("e-gift", "")))
    assert bool({"gift", "Hello", "your"} & said) == (tag == "en")


@pytest.mark.parametrize(
    ("tag", "subject", "many", "ready", "shipped"),
    [
        ("en", "Ada sent you a gift", "Ada sent you gifts", "Your gift is ready", "Your gift is on its way"),
        (
            "fr",
            "Un cadeau pour vous, offert par Ada",
            "Des cadeaux pour vous, offerts par Ada",
            "Votre cadeau est prêt",
            "Votre cadeau est en route",
        ),
        (
            "de",
            "Ein Geschenk für Sie von Ada",
            "Geschenke für Sie von Ada",
            "Ihr Geschenk ist da",
            "Ihr Geschenk ist unterwegs",
        ),
    ],
)
def test_subjects(tag: str, subject: str, many: str, ready: str, shipped: str) -> None:
    language = LANGUAGES[tag]
    assert parse(a_letter(language=language))["Subject"] == subject
    assert parse(a_letter(language=language, codes=[CODE, CODE]))["Subject"] == many
    assert parse(a_letter(language=language, kind="voucher_ready"))["Subject"] == ready
    assert parse(a_letter(language=language, kind="shipped"))["Subject"] == shipped


@pytest.mark.parametrize(
    ("comes_as", "step", "expiry"),
    [
        (VOUCHER, "Your voucher appears", "Use it within 1 day of opening it."),
        (PARCEL, "Tell us where to send it.", "Tell us the address within 1 day of opening it."),
        (CHOICE, "Choose your gift. For one that comes by post", "Choose within 1 day of opening it."),
    ],
)
def test_the_steps_fit_the_gift(comes_as: str, step: str, expiry: str) -> None:
    html, text = bodies(parse(a_letter(comes_as=comes_as, expiry_days=1)))
    for words in (Seen(html).text, text):
        assert step in words
        assert expiry in words
        assert ("voucher" in words) == (comes_as == VOUCHER)
    assert f"\n\n{expiry}\n\n" in text, "a paragraph of its own"


@pytest.mark.parametrize(
    ("tag", "currency", "minor", "amount"),
    [
        ("en", "GBP", 1000, "£10.00"),
        ("fr", "EUR", 123456, "1\N{NARROW NO-BREAK SPACE}234,56\N{NO-BREAK SPACE}€"),
        ("de", "EUR", 123456, "1.234,56\N{NO-BREAK SPACE}€"),
        ("de", "JPY", 500, "500\N{NO-BREAK SPACE}¥"),
    ],
)
def test_amounts_are_written_as_on_the_pages(tag: str, currency: str, minor: int, amount: str) -> None:
    language = LANGUAGES[tag]
    assert language.amount(minor, currency) == amount
    html, text = bodies(parse(a_letter(language=language, currency=currency, value_minor=minor)))
    assert amount in Seen(html).text
    assert amount in text


@pytest.mark.parametrize(
    ("sender", "mail_from", "name"),
    [
        ("Acme", "Largesse <gifts@example.com>", "Acme via Largesse"),
        ("Acme", "gifts@example.com", "Acme via example.com"),
        (None, "Largesse <gifts@example.com>", "Largesse"),
        (None, "gifts@example.com", ""),
        ('Müller & "Söhne", GmbH', "Largesse <gifts@example.com>", 'Müller & "Söhne", GmbH via Largesse'),
        ("ceo@bank.example", "Largesse <gifts@example.com>", "ceo@bank.example via Largesse"),
        ("Eve <eve@evil.example>,", "Largesse <gifts@example.com>", "Eve <eve@evil.example>, via Largesse"),
        ("Eve\r\nBcc: victim@example.com", "Largesse <gifts@example.com>", "Eve Bcc: victim@example.com via Largesse"),
        ("=?utf-8?q?Eve?=", "Largesse <gifts@example.com>", "=?utf-8?q?Eve?= via Largesse"),
        ("\u202eesoH\u202c", "Largesse <gifts@example.com>", "esoH via Largesse"),
        ("\u2067أحمد", "Largesse <gifts@example.com>", "أحمد via Largesse"),
        ("x" * 32, '"Acme, Inc." <gifts@example.com>', f"{'x' * 32} via Acme, Inc."),
    ],
)
def test_it_is_from_the_sender_by_way_of_the_house(sender: str | None, mail_from: str, name: str) -> None:
    message = parse(a_letter(sender=sender), mail_from)
    [address] = message["From"].addresses
    assert (address.display_name, address.addr_spec) == (name, "gifts@example.com")
    assert message["Bcc"] is None
    assert len(message.keys()) == len(parse(a_letter()).keys())


def test_a_name_written_from_right_to_left_stays_apart_from_our_words() -> None:
    html, text = bodies(parse(a_letter(sender="أحمد", name="נועה", message="שלום\nhello")))
    assert '<span dir="auto">أحمد</span> has sent you:' in html
    assert 'Hello <span dir="auto">נועה</span>,' in html
    assert re.search(r'<td class="said" dir="auto"[^>]*>שלום<br>hello</td>', html)
    assert "\N{FIRST STRONG ISOLATE}أحمد\N{POP DIRECTIONAL ISOLATE} has sent you:" in text
    html, text = bodies(parse(a_letter(sender="Zoë")))
    assert "\N{FIRST STRONG ISOLATE}" not in text + html


def test_nothing_a_sender_wrote_turns_the_direction_of_our_words() -> None:
    turning = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    letter = a_letter(
        sender=f"A{turning}", name=f"B{turning}", message=f"C{turning}", gift=f"D{turning}",
        kind="shipped", carrier=f"E{turning}", tracking_number=f"F{turning}",
    )  # fmt: skip
    for one in (letter, replace(letter, kind="gift")):
        message = parse(one)
        for words in (*bodies(message), *map(str, message.values())):
            assert not set(words) & set(turning)


def test_notifications_have_the_link_and_neither_code_nor_pin() -> None:
    ready = parse(a_letter(kind="voucher_ready", edition=3))
    shipped = parse(a_letter(kind="shipped", edition=3, carrier="Royal <Mail>", tracking_number="RM 1&2"))
    assert ready["Subject"] == "Your gift is ready"
    assert shipped["Subject"] == "Your gift is on its way"
    assert len({message["Message-ID"] for message in (ready, shipped, parse(a_letter(edition=3)))}) == 3
    for message in (ready, shipped):
        html, text = bodies(message)
        seen = Seen(html)
        assert seen.links == [CODE.link]
        assert CODE.link in text
        for words in (seen.text, text):
            assert "Coffee House e-gift" in words
            assert CODE.code not in words
            assert CODE.pin not in words
    for words in (Seen(bodies(shipped)[0]).text, bodies(shipped)[1]):
        assert "Royal <Mail>" in words
        assert "RM 1&2" in words
        assert "came back" not in words
        assert ("See your gift" in words, "Open your gift" in words) == (True, False)
    assert "Open your gift" in Seen(bodies(ready)[0]).text


def test_a_parcel_that_is_sent_again_is_written_of_as_such() -> None:
    again, once_more = (
        parse(a_letter(kind=f"shipped_{sending}", edition=3, carrier="DHL", tracking_number="D2")) for sending in (2, 3)
    )
    assert again["Subject"] == once_more["Subject"] == "Your parcel is on its way again"
    assert again["Message-ID"] != once_more["Message-ID"]
    for words in (Seen(bodies(again)[0]).text, bodies(again)[1]):
        assert (
            "Your parcel came back to us, so we sent it once more. Coffee House e-gift is on its way to you with DHL."
            in words
        )


@pytest.mark.parametrize("key", [*WRAPPINGS, "no-such-wrapping"])
def test_every_wrapping_gives_a_whole_letter(key: str) -> None:
    html, _ = bodies(parse(a_letter(wrapping_key=key)))
    assert CODE.link in html


def test_the_text_of_several_gifts_is_set_out_in_paragraphs() -> None:
    _, text = bodies(parse(a_letter(codes=[CODE, CODE])))
    assert (
        text
        == f"""Hello Sam,

Ada has sent you:
Coffee House e-gift, £10.00

> Well done!

Ada

You have 2 of them, each with a code and a PIN of its own:

1. {CODE.link_with_pin}
   Code: 0000-1111-2222-3333-4
   PIN: 012345

2. {CODE.link_with_pin}
   Code: 0000-1111-2222-3333-4
   PIN: 012345

What to do next
1. Open one of your gifts.
2. Type in its PIN, unless it is filled in.
3. Your voucher appears: show it in a shop, or use its number online.
4. Do the same for your other gifts.

Keep this mail to yourself: anybody who has it can use the gifts.
"""
    )


def test_mail_and_pages_know_the_same_wrappings() -> None:
    assert set(THEMES) == set(rendering.THEMES) == set(WRAPPINGS)
    assert set(ALIASES.values()) <= set(WRAPPINGS)
    for key in (*WRAPPINGS, *ALIASES, "no-such-wrapping"):
        assert theme(f" {key.upper()} ") is THEMES[rendering.theme(key).key]


def test_a_staging_letter_says_what_it_is() -> None:
    for words in bodies(parse(a_letter(environment="staging"))):
        assert "nothing here is worth money" in words


def test_a_letter_to_many_offers_a_way_out() -> None:
    assert parse(a_letter(recipients=2))["List-Unsubscribe"] == "<mailto:gifts@example.com?subject=unsubscribe>"


def test_the_message_id_is_one_for_each_recipient_order_and_edition() -> None:
    same = {parse(a_letter())["Message-ID"] for _ in range(3)}
    assert same == {message_id(a_letter(), "example.com")}
    others = [a_letter(edition=1), a_letter(email="kim@example.com"), a_letter(reference="0000AAAABBBBCCCCDDDE")]
    assert len({message_id(letter, "example.com") for letter in others} | same) == 4


def test_international_addresses() -> None:
    assert to_dial("sam@bücher.example") == "sam@xn--bcher-kva.example"
    assert to_dial("zoë@bücher.example") == "zoë@xn--bcher-kva.example"
    message = parse(a_letter(email="sam@bücher.example", name="Zoë Müller, MBE"))
    [address] = message["To"].addresses
    assert (address.display_name, address.addr_spec) == ("Zoë Müller, MBE", "sam@xn--bcher-kva.example")


@pytest.mark.slow
@given(st.text(max_size=300), st.text(max_size=300))
def test_any_content_survives(text: str, html: str) -> None:
    def sane(content: str) -> str:
        return content.encode(errors="ignore").decode()

    text, html = sane(text), sane(html)
    message = email.message_from_bytes(mime.build({}, text, html, at=0), policy=email.policy.default)
    got_html, got_text = bodies(message)
    for got, given_content in ((got_text, text), (got_html, html)):
        assert got.rstrip("\n") == given_content.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
