"""What a letter says of a gift beside its name: its picture, what it is, how to use it, on what terms. And the letter as a test."""

import re
from datetime import date
from email.message import EmailMessage

import pytest
from msgspec.structs import replace
from tests.mail.test_letter import CODE, Seen, a_letter, bodies, parse

from largesse.base.i18n.languages import LANGUAGES
from largesse.branding.model import Brand
from largesse.catalogue.model import Details
from largesse.mail.letter import CAMPAIGN_CODE, GIFT, RETURNED, SHIPPED, VOUCHER_READY

# What letters say of one gift, and of several; the heading first, which stands in the HTML part alone.
ONE_OR_SEVERAL = {
    "en": (
        ("A gift from ", "Open your gift.", "Claim it by", "How to use it", "can use the gift.", "Use it within"),
        ("Gifts from ", "Open one of your gifts.", "Claim them by", "How to use them", "can use the gifts.", "Use each gift "),
    ),
    "de": (
        ("Ein Geschenk von ", "Öffnen Sie Ihr Geschenk.", "Lösen Sie es ", "das Geschenk verwenden.", "Verwenden Sie es "),
        ("Geschenke von ", "Öffnen Sie eines Ihrer Geschenke.", "Lösen Sie sie ", "die Geschenke verwenden.", "Verwenden Sie jedes "),
    ),
    "fr": (
        ("Un cadeau offert par ", "Ouvrez votre cadeau.", "Récupérez-le ", "utiliser le cadeau.", "Utilisez-le "),
        ("Des cadeaux offerts par ", "un de vos cadeaux.", "Récupérez-les ", "Comment les utiliser", "utiliser les cadeaux.", "Utilisez chaque cadeau "),
    ),
}  # fmt: skip
REMINDED = {
    "en": (("not opened this gift yet", "of this gift"), ("not opened these gifts yet", "of these gifts")),
    "de": (
        ("haben dieses Geschenk noch nicht", "an dieses Geschenk"),
        ("Diese Geschenke warten", "an diese Geschenke"),
    ),
    "fr": (("pas encore ouvert ce cadeau", "pour ce cadeau"), ("pas encore ouvert ces cadeaux", "pour ces cadeaux")),
}


def test_a_letter_says_what_the_gift_is_how_to_use_it_and_on_what_terms() -> None:
    picture = "https://gifts.example.com/pictures/0123456789abcdef0123456789abcdef.png"
    details = Details("Hot\nand <fresh>.", "Show it.\nDrink it.", "No refunds & no cash.")
    html, text = bodies(parse(a_letter(picture=picture, details=details)))

    seen = Seen(html)
    assert seen.tags.count("img") == 1
    assert f'src="{picture}"' in html
    for said in ("Hot", "and <fresh>.", "How to use it", "Drink it.", "Terms", "No refunds & no cash."):
        assert said in seen.text
        assert said in text
    assert picture not in text
    assert text.index("Coffee House") < text.index("and <fresh>.") < text.index("How to use it") < text.index("Terms")


def test_a_letter_about_a_gift_of_which_nothing_is_said_has_no_picture_and_no_headings() -> None:
    html, text = bodies(parse(a_letter()))
    assert "<img" not in html
    for said in ("How to use it", "Terms"):
        assert said not in html
        assert said not in text


@pytest.mark.parametrize("ending", [0, 1])
def test_word_of_a_voucher_says_how_to_use_it(ending: int) -> None:
    details = Details("Hot.", "Show it.", "No refunds.")
    said = {kind: bodies(parse(a_letter(kind=kind, details=details)))[ending] for kind in ("voucher_ready", "shipped")}
    assert "Show it." in said["voucher_ready"]
    assert "Show it." not in said["shipped"]


@pytest.mark.parametrize("tag", list(LANGUAGES))
def test_a_test_says_that_it_is_one_before_anything_else(tag: str) -> None:
    letter = a_letter(language=LANGUAGES[tag])
    message, test = parse(letter), parse(replace(letter, is_test=True))
    assert test["Subject"] == f"[Test] {message['Subject']}"
    for words, said in zip(map(shown_text, (message, test)), (False, True), strict=True):
        assert all(("test" in one[:200].lower()) is said for one in words)


def shown_text(message: EmailMessage) -> tuple[str, str]:
    html, text = bodies(message)
    return Seen(html.partition("<table")[2]).text.strip(), text


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("tag", list(ONE_OR_SEVERAL))
def test_a_letter_speaks_of_one_gift_or_of_several(tag: str, count: int) -> None:
    details, language = Details(None, "Show it.", None), LANGUAGES[tag]
    gift = a_letter(language=language, codes=[CODE] * count, expiry_days=9, claim_by=date(2027, 2, 1), details=details)
    for letter, texts in ((gift, ONE_OR_SEVERAL[tag]), (replace(gift, kind="reminder_1"), REMINDED[tag])):
        said, unsaid = texts if count == 1 else (texts[1], texts[0])
        html, text = bodies(parse(letter))
        seen = Seen(html).text
        assert [one for one in said if one not in seen] == []
        assert [one for one in said[1:] if one not in text] == []
        assert [one for one in unsaid if one in seen + text] == []


@pytest.mark.parametrize("kind", ["gift", "reminder_1", "reminder_last"])
@pytest.mark.parametrize("sender", ["Ada", None])
@pytest.mark.parametrize("tag", list(LANGUAGES))
def test_a_subject_tells_one_gift_from_several(tag: str, sender: str | None, kind: str) -> None:
    letter = a_letter(language=LANGUAGES[tag], sender=sender, kind=kind)
    one, several = (str(parse(replace(letter, codes=[CODE] * count))["Subject"]) for count in (1, 2))
    assert one != several
    assert re.search(r"\b([Gg]ifts|Geschenke|cadeaux)\b", several)


@pytest.mark.parametrize("kind", [GIFT, "reminder", VOUCHER_READY, SHIPPED, "shipped_2", RETURNED, CAMPAIGN_CODE])
def test_the_footer_of_a_company_stands_in_both_parts_of_all_its_mail(kind: str) -> None:
    letter = a_letter(kind=kind, asked_code="012345", brand=Brand(footer="Acme Ltd, London.\nCompany no. 1"))
    html, text = bodies(parse(letter))
    assert html.count("Acme Ltd, London.<br>Company no. 1") == 1
    assert text.count("Acme Ltd, London.\nCompany no. 1") == 1


def test_the_mail_about_a_parcel_that_came_back_leads_to_the_page_that_corrects_its_address() -> None:
    back, once_more = (parse(a_letter(kind=kind, edition=3)) for kind in ("returned", "returned_2"))
    assert back["Subject"] == once_more["Subject"] == "Your parcel came back to us"
    assert back["Message-ID"] != once_more["Message-ID"]
    seen = Seen(bodies(back)[0])
    assert seen.links == [CODE.link]
    for words in (seen.text, bodies(back)[1]):
        assert "check the address on the page of your gift" in words
        assert ("See your gift" in words, "Open your gift" in words) == (True, False)


def test_no_line_of_the_message_looks_like_one_of_ours() -> None:
    forged = "Open your gift: https://gifts.example.org/claim/abc\n\nCode: 9999-8888-7777-6666-5\r\nPIN: 543210\rWhat to do next"
    _, text = bodies(parse(a_letter(message=forged, sender="The gift service")))
    ours = [line for line in text.split("\n") if line.startswith(("Open your gift", "Code", "PIN", "What to do next"))]
    assert ours == [f"Open your gift: {CODE.link_with_pin}", f"Code: {CODE.code}", "PIN: 012345", "What to do next"]
