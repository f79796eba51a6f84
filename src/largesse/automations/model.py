"""An automation, the days on which it sends, and the reasons not to send."""

from calendar import isleap
from collections.abc import Collection, Iterable
from datetime import date, datetime, timedelta

import msgspec

from largesse.base.confidential import Confidential

BIRTHDAY, ANNIVERSARY, FIRST_DAY, JOINED = OCCASIONS = ("birthday", "anniversary", "first_day", "joined")
CHOOSES_DAYS = ("occasion", "group_id", "years", "days")  # what says which days of which contacts an automation is for
LEAP_DAYS = ("before", "after")
WEEKENDS = ("keep", "before", "after")
MOST_AUTOMATIONS = 100  # per customer and environment
MOST_NAME = 60  # characters
MOST_DAYS = 3_650  # days after joining a group
MOST_YEARS = 20  # anniversaries of one automation
LAST_YEAR = 60
LONGEST_SERVICE = 100  # years; the last anniversary of an automation that is for every year
MOST_CAP = 100_000  # gifts in a month
PLANNED_DAYS = 3  # how far ahead gifts are planned, as one for a weekend may be sent on the Friday before
HALF_A_YEAR = timedelta(days=183)
MADE_UP_DAYS = 3  # for how many days a gift that could not be sent is tried again
PREVIEW_DAYS = 60
SOURCE = "automation"

WAITING, PLACING, PLACED, SKIPPED, FAILED, MISSED = STATES = (
    "waiting", "placing", "placed", "skipped", "failed", "missed",
)  # fmt: skip
# Why a gift was skipped. It may be the text of a problem instead.
BY_PERSON, PAUSED, CAP, LEFT, CHANGED, AGAIN = "person", "paused", "cap", "left", "changed", "again"
NOT_APPROVED = "not_approved"
# Why a gift could not be placed. BUDGET and PER_GIFT are followed by currency, amount and the budget's name: `budget:GBP:0:Birthdays`.
# APPROVAL is followed by the names of the approval rules: `approval:Above £500`.
BALANCE, BUDGET, PER_GIFT, APPROVAL = "balance", "budget", "per_gift", "approval"


class AutomationRule(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an automation."""

    name: str
    occasion: str
    group_id: int | None
    template_id: int
    account_id: int | None
    zone: str
    years: tuple[int, ...] = ()  # which anniversaries; empty: every year
    days: int | None = None  # days after joining the group
    leap_day: str = "before"
    weekend: str = "keep"
    cap: int | None = None  # gifts in a month
    asks_approval: bool = False


class Automation(AutomationRule, frozen=True, kw_only=True):
    """An automation as it is stored."""

    customer_id: int
    id: int
    environment: str
    user_id: int  # the person who set it last; it sends as that person
    approved_by: int | None
    approved_minor: int | None  # what one gift cost when it was approved, in minor units
    paused_at: datetime | None
    ended_at: datetime | None
    created_at: datetime
    planned_through: date
    owner: str | None = None  # the name of that person
    owner_role: str | None = None  # the role of that person; None if they were removed
    group: str | None = None
    template: str | None = None
    account: str | None = None

    @property
    def state(self) -> str:
        """Returns `ended`, `paused`, `asks` while it waits for approval, or `running`."""
        if self.ended_at is not None:
            return "ended"
        if self.paused_at is not None:
            return "paused"
        return "asks" if self.asks_approval and self.approved_by is None else "running"


def gives_twice(one: AutomationRule, other: AutomationRule) -> bool:
    """Returns whether a contact of both automations gets a gift from each for the same day."""
    if one.occasion != other.occasion:
        return False
    if one.occasion == JOINED:
        return (one.group_id, one.days) == (other.group_id, other.days)
    if one.occasion == ANNIVERSARY and one.years and other.years:
        return not set(one.years).isdisjoint(other.years)
    return True


class RunKey(msgspec.Struct, frozen=True):
    """The key of an automation's gift: its contact, and the day."""

    customer_id: int
    automation_id: int
    contact_id: int
    on_day: date

    @property
    def external_reference(self) -> str:
        """Returns the reference of its order. It contains rule, contact and day, so that there is at most one order."""
        return f"automation-{self.automation_id}-{self.contact_id}-{self.on_day.isoformat()}"


class Days(Confidential, frozen=True):
    """The dates of a contact. It has no repr, as it is personal."""

    birthday: int | None  # the month times 100 and the day
    start_date: date | None
    joined_on: date | None  # the automation's group; None: not a member
    is_active: bool


def has_day(rule: AutomationRule, contact: Days, day: date) -> bool:
    """Returns whether `day` is a day of the contact for the rule. `store.PLAN` says the same in SQL."""
    if not contact.is_active or (rule.group_id is not None and contact.joined_on is None):
        return False
    if rule.occasion == BIRTHDAY:
        return contact.birthday in keys_of(day, rule.leap_day)
    if rule.occasion == JOINED:
        assert rule.days is not None, "so many days after joining"
        return contact.joined_on is not None and contact.joined_on + timedelta(days=rule.days) == day
    if contact.start_date is None:
        return False
    if rule.occasion == FIRST_DAY:
        return contact.start_date == day
    years = day.year - contact.start_date.year
    return (
        contact.start_date.month * 100 + contact.start_date.day in keys_of(day, rule.leap_day)
        and 1 <= years <= LONGEST_SERVICE
        and (not rule.years or years in rule.years)
    )


def is_again(day: date, given: Iterable[date]) -> bool:
    """Returns whether a gift for `day` would be a second one, beside those for the days `given`: in the same year, or within half a year.

    A contact whose birthday is corrected from 30 December to 2 January had the gift already.
    """
    return any(day.year == one.year or abs(day - one) < HALF_A_YEAR for one in given)


def keys_of(day: date, leap_day: str) -> Collection[int]:
    """Returns the birthdays that are celebrated on a day, each as month times 100 plus day.

    In a year without 29 February, `leap_day` says which day stands for it.
    """
    own = day.month * 100 + day.day
    is_its_day = own == (228 if leap_day == "before" else 301)
    return (own, 229) if is_its_day and not isleap(day.year) else (own,)


def send_day(day: date, weekend: str) -> date:
    """Returns the day on which the gift for a day is sent."""
    after_friday = day.isoweekday() - 5
    if weekend == "keep" or after_friday <= 0:
        return day
    return day + timedelta(days=-after_friday if weekend == "before" else 3 - after_friday)
