"""The plan of the demo's history: the same each time, and of every kind that pages show."""

from datetime import UTC, datetime

from largesse.base.i18n.languages import DEFAULT
from largesse.demo.people import DemoMailServer, Received
from largesse.demo.plan import DAYS, sendings, working_days
from largesse.mail.letter import GIFT, VOUCHER, Letter, LetterCode, write


def test_the_plan_is_the_same_each_time_and_in_order() -> None:
    orders = sendings()
    assert orders == sendings()
    assert [(one.day, one.minute) for one in orders] == sorted((one.day, one.minute) for one in orders)
    assert {0, DAYS - 1} <= {one.day for one in orders} <= set(range(DAYS))


def test_the_plan_has_every_kind_of_order() -> None:
    orders = sendings()
    assert len({one.sender for one in orders}) == 5, "people and service accounts"
    assert all(sum(what is not None for what in (one.product, one.collection, one.template)) == 1 for one in orders)
    for some in (
        [one for one in orders if one.codes],
        [one for one in orders if one.in_days],
        [one for one in orders if one.cancelled_after],
        [one for one in orders if one.resent_after],
        [one for one in orders if any(guest.mended_after for guest in one.guests)],
        [one for one in orders if any(guest.is_mistyped and guest.mended_after is None for guest in one.guests)],
        [one for one in orders if len(one.guests) > 50],
    ):
        assert some
    references = [one.reference for one in orders if one.reference]
    assert len(references) == len(set(references))


def test_mistyped_addresses_are_nobody_elses() -> None:
    guests = [guest for one in sendings() for guest in one.guests]
    typed = {guest.typed for guest in guests if guest.is_mistyped}
    assert not typed & {guest.email for guest in guests}


def test_working_days_end_before_today_and_leave_weekends_out() -> None:
    monday = datetime(2030, 1, 7, 15, 30, tzinfo=UTC)
    assert working_days(monday, 6) == [
        *(datetime(2029, 12, day, tzinfo=UTC) for day in (28, 31)),
        *(datetime(2030, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)),
    ]


async def test_recipients_of_the_history_read_links_and_pins_in_their_mail() -> None:
    letter = Letter(
        kind=GIFT, reference="00000000000000000000", edition=0, environment="production", language=DEFAULT, email="kim@example.com",
        name="Zoë", sender="Acme", message="= £5 \n.From 🎁", wrapping_key="default", gift="Coffee", comes_as=VOUCHER,
        value_minor=1000, currency="GBP", expiry_days=None, recipients=1,
        codes=[LetterCode("0000-0000-0000-0000-0", "123456", f"http://127.0.0.1:8000/claim/{40 * 'x'}")],
    )  # fmt: skip
    server = DemoMailServer(["gone@example.com"])

    async def allow() -> None:
        pass

    message = write(letter, "Acme <gifts@example.com>", at=0)
    assert (await server.hand_over("gifts@example.com", "gone@example.com", message, allow)).refused
    assert (await server.hand_over("gifts@example.com", "kim@example.com", message, allow)).taken
    assert server.inbox == [Received("kim@example.com", 40 * "x", "123456")]
