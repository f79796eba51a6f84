"""Follow-ups of an order's unclaimed gifts, and a customer's defaults for orders that do not set them.

claim-by date   then unclaimed codes are cancelled, and refunded in full to the account that paid
reminders       mail to recipients who have not claimed: some days after the gifts left, and before the claim-by date
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import astuple

from largesse.base.errors import InvalidRequest
from largesse.base.zones import after, daytime_from
from largesse.db.fragments import Fragment, compose, placeholder
from largesse.db.pool import Connection
from largesse.db.statements import insert

MAX_REMINDERS = 3
MAX_REMINDER_DAYS = 365
# How long before the claim-by date the last reminder leaves, unless the gift itself leaves later.
LAST_REMINDER = timedelta(days=3)
# The longest time from when an order is sent to its claim-by date.
MAX_CLAIM_BY_DAYS = 3_650
# The shortest time that recipients have if people choose the date: a day, which may have 23 hours. Mail names the last whole day, which would else be
# before the gift leaves. A program may want a gift to be claimed within the hour.
LEAST_TO_CLAIM = timedelta(hours=23)
ReminderDays = (
    Annotated[
        list[Annotated[int, Meta(ge=1, le=MAX_REMINDER_DAYS)]],
        Meta(
            max_length=MAX_REMINDERS,
            description="So many days after the gifts leave, recipients who have not claimed are reminded by mail, at their daytime: at most "
            "three numbers, ascending, before `claimBy`. An empty list: none. Left out: the customer's default, if it has one for "
            "orders of the API. Ignored for a code batch.",
            examples=[[3, 10]],
        ),
    ]
    | None
)
_DAY_ENDS = time(23, 59, 59, fold=1)  # if clocks go back in the last hour, the later end


class FollowUp(msgspec.Struct, frozen=True):
    """The follow-ups of an order. It has no claim-by date if `claim_by` is None."""

    claim_by: datetime | None = None
    reminder_days: tuple[int, ...] = ()


class Reminder(msgspec.Struct, frozen=True):
    """A reminder that may leave at `at` or later. `number` is its position in `reminder_days`, from 1; 0 is the one before the claim-by date."""

    number: int
    at: datetime

    @property
    def kind(self) -> str:
        """The kind that its messages have in `messages`."""
        return f"reminder_{self.number or 'last'}"


class Schedule(msgspec.Struct, frozen=True):
    """The remaining follow-ups of an order: a row of `follow_ups`, and the country in whose daytime its reminders leave.

    In staging, reminders leave at any hour, so that the test clock can bring them forward.
    """

    environment: str
    country: str
    sent_at: datetime
    claim_by: datetime | None
    reminder_days: Sequence[int]
    reminded: int = 0
    reminded_last: bool = False

    def reminders(self) -> list[Reminder]:
        """Returns the reminders that are still to be made, the next first. Leaves out those that would come at the claim-by date or later."""
        left = [
            Reminder(number, after(self.sent_at, timedelta(days=days)))
            for number, days in enumerate(self.reminder_days, 1)
            if number > self.reminded
        ]
        if self.claim_by is not None:
            left = [one for one in left if one.at < self.claim_by]
            last = Reminder(0, self.claim_by - LAST_REMINDER)
            if not self.reminded_last and last.at > self.sent_at:
                left.append(last)
        return sorted(left, key=lambda one: one.at)

    def due_at(self, now: datetime) -> datetime | None:
        """Returns the time of the next reminder, in daytime and not before `now`, or the claim-by date if that is earlier. None if neither is left."""
        left = self.reminders()
        due = [] if not left else [self.leaves_at(max(left[0].at, now))]
        if self.claim_by is not None:
            due.append(self.claim_by)
        return min(due, default=None)

    def leaves_at(self, at: datetime) -> datetime:
        """Returns the first instant from `at` on at which a reminder may leave."""
        return at if self.environment == "staging" else daytime_from(at, self.country)

    def without(self, done: Iterable[Reminder]) -> Schedule:
        """Returns the schedule after these reminders were made."""
        numbers = [one.number for one in done]
        return msgspec.structs.replace(
            self, reminded=max([self.reminded, *numbers]), reminded_last=self.reminded_last or 0 in numbers
        )


class FollowUpDefaults(msgspec.Struct, frozen=True, omit_defaults=True):
    """A customer's defaults for orders that do not set their follow-ups: for orders of people, and with `of_api` also for orders of API keys."""

    claim_by_days: int | None = None  # days from when an order is sent
    of_api: bool = False
    reminder_days: tuple[int, ...] = ()

    def claim_by(self, sent_at: datetime, zone: tzinfo = UTC) -> datetime | None:
        """Returns the claim-by date of an order sent then, which is the end of a day in a zone; None without a default or beyond the calendar."""
        if self.claim_by_days is None:
            return None
        try:
            day = sent_at.astimezone(zone).date() + timedelta(days=self.claim_by_days)
            return datetime.combine(day, _DAY_ENDS, zone).astimezone(UTC)
        except OverflowError:
            return None


NO_DEFAULTS = FollowUpDefaults()
_DEFAULTS = msgspec.json.Decoder(FollowUpDefaults)
_encode = msgspec.json.Encoder().encode


def read_defaults(stored: str | None) -> FollowUpDefaults:
    """Returns the defaults that a customer's row has as JSON."""
    return NO_DEFAULTS if stored is None else _DEFAULTS.decode(stored)


def store_defaults(defaults: FollowUpDefaults) -> str | None:
    """Returns the defaults as JSON for a customer's row, as `read_defaults` reads it."""
    return None if defaults == NO_DEFAULTS else _encode(defaults).decode()


def read_claim_by(given: datetime | None, sent_at: datetime | None, now: datetime) -> datetime | None:
    """Returns the claim-by date of an order that is sent at `sent_at`, or now if that is None. Raises InvalidRequest if it is too early or too late."""
    if given is None:
        return None
    try:
        at = given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    except OverflowError:
        raise InvalidRequest("`claim_by` is outside the calendar.") from None
    if at <= now:
        raise InvalidRequest("`claim_by` must be in the future.")
    if sent_at is not None and at <= sent_at:
        raise InvalidRequest("`claim_by` must be later than `send_at`, when the gifts leave.")
    if at - (sent_at or now) > timedelta(days=MAX_CLAIM_BY_DAYS):
        raise InvalidRequest(f"`claim_by` must be at most {MAX_CLAIM_BY_DAYS:,} days after the gifts leave.")
    return at


def read_reminder_days(
    given: Sequence[int] | None, sent_at: datetime, claim_by: datetime | None
) -> tuple[int, ...] | None:
    """Returns the days of the reminders of an order that is sent at that time; None if the request names none. Raises InvalidRequest."""
    if given is None:
        return None
    if any(later <= earlier for earlier, later in pairwise(given)):
        raise InvalidRequest("`reminder_days` must ascend, each number once.")
    if given and claim_by is not None and after(sent_at, timedelta(days=given[-1])) >= claim_by:
        raise InvalidRequest("`reminder_days` must all be over before `claim_by`.")
    return tuple(given)


class FollowUpRow(msgspec.Struct, gc=False):
    """A row of `follow_ups`. `place` is the position of its order in the batch, as the order has no id yet."""

    place: int
    customer_id: int
    environment: str
    claim_by: datetime | None
    reminder_days: tuple[int, ...]
    sent_at: datetime
    due_at: datetime | None


_COLUMNS = Fragment("environment, claim_by, reminder_days, sent_at, due_at")
_INTO = compose("INSERT INTO follow_ups (customer_id, order_id, {columns})", columns=_COLUMNS)


def new_follow_ups(follow_ups: str, *, order_id: Fragment) -> Fragment:
    """Returns SQL that writes follow-ups: part of a statement.

    `follow_ups` is the placeholder of the `FollowUpRow`s as a JSON array; `order_id` is SQL for the id of the order at a `place`.
    """
    return compose(
        """
        {into}
        SELECT customer_id, {order_id}, {columns} FROM json_to_recordset({follow_ups}::json) AS new (
            place integer, customer_id integer, environment text, claim_by timestamptz, reminder_days smallint[], sent_at timestamptz,
            due_at timestamptz)
    """,
        into=_INTO,
        order_id=order_id,
        columns=_COLUMNS,
        follow_ups=placeholder(follow_ups),
    )


async def insert_follow_ups(connection: Connection, rows: Iterable[tuple[int, FollowUpRow]]) -> None:
    """Writes follow-ups of one customer with their orders' ids, on the customer's node."""
    columns = [(row.customer_id, order_id, *astuple(row)[2:]) for order_id, row in rows]
    await insert(connection, _INTO, columns)
