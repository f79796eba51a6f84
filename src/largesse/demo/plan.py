"""The orders of the demo's customer in three months: plain data, the same at each start. A timeline runs acts in the order of their times.

A `day` is one of the last `DAYS` working days before today, from 0. A `minute` counts from the midnight of its day.
"""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

import msgspec

from largesse.base import clock
from largesse.db.clock import move_clock
from largesse.db.pool import Connection

DAYS = 64  # working days, about three months
_FIRST_NAMES = ("Ada", "Ben", "Chloe", "Dan", "Emma", "Finn", "Grace", "Hugo", "Iris", "Jack", "Kim", "Liam", "Mia", "Noah")  # fmt: skip
_LAST_NAMES = ("Whitfield", "Nowak", "Raman", "Brandt", "Weber", "Lovelace", "Hopper", "Byron", "King", "Doe")
_CLIENTS = ("example.com", "example.net", "example.org")
_NINE, _DAY = 9 * 60, 24 * 60


class Guest(msgspec.Struct, frozen=True):
    """A recipient. Mail to a mistyped address bounces. The address is corrected after `mended_after` minutes, if that is set."""

    name: str
    email: str
    is_mistyped: bool = False
    mended_after: int | None = None

    @property
    def typed(self) -> str:
        """The address in the order."""
        local, _, domain = self.email.partition("@")
        return f"{local}x@{domain}" if self.is_mistyped else self.email


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """An order: its sender, gift, recipients and day. Exactly one of product, collection and template is set."""

    day: int
    minute: int
    sender: str  # a person's address, or the key of a service account
    account: str | None  # None for invoiced orders
    product: str | None = None
    collection: str | None = None
    template: str | None = None
    value: float | None = None
    guests: Sequence[Guest] = ()
    codes: int | None = None
    from_name: str | None = None
    message: str | None = None
    wrapping: str | None = None
    source: str | None = None
    reference: str | None = None
    in_days: int | None = None  # the number of days until it is sent, if it is scheduled
    cancelled_after: int | None = None  # minutes until it is cancelled
    resent_after: int | None = None  # minutes until the mail is sent again to recipients without a claim
    claim_within: int | None = None  # days until unclaimed gifts are refunded
    reminders: tuple[int, ...] = ()  # days until each reminder


ADA, TOMASZ, PRIYA = "ada@acme.example", "tomasz@acme.example", "priya@acme.example"
BOT, CRM = "hr-bot", "sales-crm"
INVOICED = Sending(day=40, minute=14 * 60, sender="rewards", account=None, template="danke", codes=30)


def sendings() -> list[Sending]:
    """Returns all orders, sorted by time."""
    chance = Random("largesse demo")  # noqa: S311 - no secret
    people = _colleagues(chance)
    orders = [
        *_birthdays(chance, people),
        *_of_sales(chance),
        *_welcomes(people),
        *_anniversaries(people),
        *_thanks(people),
        *_rare(people),
    ]
    return sorted(orders, key=lambda one: (one.day, one.minute))


def _colleagues(chance: Random) -> list[Guest]:
    names = [f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES]
    chance.shuffle(names)
    return [Guest(name, f"{name.lower().replace(' ', '.')}@acme.example") for name in names]


def _birthdays(chance: Random, people: Sequence[Guest]) -> Iterator[Sending]:
    """Yields birthday gifts from the HR system, every other day."""
    at = 0
    for day in range(0, DAYS, 2):
        count = chance.randint(1, 3)
        yield Sending(
            day=day, minute=_NINE + chance.randint(0, 20), sender=BOT, account="acme-gbp", template="birthday",
            guests=people[at : at + count], source="birthdays", reference=f"birthdays-{day:03}",
        )  # fmt: skip
        at += count


def _of_sales(chance: Random) -> Iterator[Sending]:
    """Yields coffees for clients from the sales team's system. Some addresses are mistyped."""
    number = 0
    for day in range(1, DAYS):
        if day % 3 == 0:
            continue
        guests = []
        for _ in range(chance.randint(1, 4)):
            number += 1
            name = f"{chance.choice(_FIRST_NAMES)} {chance.choice(_LAST_NAMES)}"
            is_mistyped = number % 17 == 0
            mended = chance.randint(30, 300) if is_mistyped and day < DAYS - 10 else None
            email = f"{name.lower().replace(' ', '.')}{number}@{chance.choice(_CLIENTS)}"
            guests.append(Guest(name, email, is_mistyped, mended))
        yield Sending(
            day=day, minute=chance.randint(10 * 60, 17 * 60), sender=CRM, account="sales-team", product="coffee-house",
            value=chance.choice((5.0, 5.0, 10.0)), guests=guests, from_name="Acme", source="crm", reference=f"crm-{2000 + day}",
            message="Thank you for your time. The next coffee is on us.",
        )  # fmt: skip


def _welcomes(people: Sequence[Guest]) -> Iterator[Sending]:
    """Yields welcome gifts for new colleagues, once a week."""
    for week, day in enumerate(range(2, DAYS, 5)):
        yield Sending(
            day=day, minute=_NINE + 35 + week, sender=PRIYA, account="people-team", template="welcome",
            guests=people[week * 3 : week * 3 + 2 + week % 3], reference=f"Starters {week + 1}",
            cancelled_after=45 if week == 5 else None, resent_after=6 * _DAY if week in {3, 8} else None,
        )  # fmt: skip


def _anniversaries(people: Sequence[Guest]) -> Iterator[Sending]:
    for number, day in enumerate(range(3, DAYS, 7)):
        guests = people[100 + number * 2 : 101 + number * 2 + number % 2]
        is_parcel = number % 3 == 1
        yield Sending(
            day=day, minute=11 * 60 + 7 * number, sender=TOMASZ, account="acme-gbp", guests=guests, wrapping="gold",
            from_name="Acme", message="Five years. Thank you!",
            product="autumn-hamper" if is_parcel else None, template=None if is_parcel else "five-years",
        )  # fmt: skip


def _thanks(people: Sequence[Guest]) -> Iterator[Sending]:
    """Yields larger thank-you orders: for teams, and once for the whole company."""
    for number, (day, count, why) in enumerate(
        ((4, 12, "Thank you for the launch!"), (18, 22, "A wonderful quarter. Thank you!"), (33, 16, "You kept us running all night."),
         (47, 26, "Thank you for the move."), (58, 21, "Release day. Well done!"))
    ):  # fmt: skip
        yield Sending(
            day=day, minute=15 * 60 + number * 11, sender=ADA, account="acme-gbp", collection="any-amount", value=20.0,
            guests=people[number * 20 : number * 20 + count], from_name="Ada and the team", message=why, wrapping="confetti",
            reference=f"Team thanks {number + 1}", resent_after=8 * _DAY if number == 1 else None,
            claim_within={1: 30, 4: 60}.get(number), reminders=(3, 10) if number in {1, 4} else (),
        )  # fmt: skip
    yield Sending(
        day=26, minute=10 * 60 + 30, sender=ADA, account="acme-gbp", collection="everyday-treats", value=25.0,
        guests=people[:84], from_name="Everyone at Acme", message="Ten years of Acme. Thank you for being part of it!",
        wrapping="celebration", reference="Ten years", resent_after=10 * _DAY,
    )  # fmt: skip


def _rare(people: Sequence[Guest]) -> Iterator[Sending]:
    """Yields batches of codes, gifts abroad, parcels and scheduled orders."""
    yield Sending(
        day=21,
        minute=13 * 60,
        sender=ADA,
        account="acme-gbp",
        product="cinema-ticket",
        codes=25,
        reference="Summer fair",
    )
    yield Sending(
        day=50, minute=16 * 60, sender=TOMASZ, account="acme-gbp", product="coffee-house", value=10.0, codes=10
    )
    for number, day in enumerate((10, 30, 52)):
        yield Sending(
            day=day, minute=14 * 60 + number, sender=PRIYA, account="acme-eur", template="lyon-welcome",
            guests=[Guest(one.name, one.email.replace("@acme", "@lyon.acme")) for one in people[60 + number * 4 : 63 + number * 4]],
        )  # fmt: skip
    for number, day in enumerate((14, 41, 61)):
        yield Sending(
            day=day, minute=12 * 60, sender=PRIYA, account="acme-gbp", template="new-baby", guests=people[130 + number : 131 + number],
        )  # fmt: skip
    yield Sending(
        day=36, minute=10 * 60, sender=TOMASZ, account="acme-gbp", product="spa-day", guests=people[90:94], cancelled_after=2 * _DAY,
        from_name="Acme", message="For four very long weeks.",
    )  # fmt: skip
    yield Sending(
        day=DAYS - 3, minute=9 * 60 + 30, sender=TOMASZ, account="acme-gbp", product="autumn-hamper", guests=people[56:94],
        from_name="Everyone at Acme", message="A hamper for everybody who moved house with us.", reference="Hampers",
    )  # fmt: skip
    yield Sending(
        day=DAYS - 1, minute=16 * 60, sender=ADA, account="acme-gbp", collection="days-out", value=55.0, guests=people[40:46],
        from_name="Ada", message="Happy new season!", in_days=9, reference="Season opening",
    )  # fmt: skip
    yield Sending(
        day=DAYS - 2, minute=9 * 60 + 50, sender=PRIYA, account="people-team", template="welcome", guests=people[126:129], in_days=5,
    )  # fmt: skip


_TOGETHER = timedelta(minutes=40)  # acts within this time run at one time of the database's clock
_AT_ONCE = 8

Act = Callable[[], Awaitable[None]]


class _Due(NamedTuple):
    """An act and its time. `number` keeps acts with the same time in the order in which they were added."""

    at: datetime
    number: int
    act: Act


def working_days(today: datetime, days: int) -> list[datetime]:
    """Returns the midnights of the last `days` working days before today, oldest first."""
    found: list[datetime] = []
    day = today.replace(hour=0, minute=0, second=0, microsecond=0)
    while len(found) < days:
        day -= timedelta(days=1)
        if day.weekday() < 5:
            found.append(day)
    return found[::-1]


class Timeline:
    """A schedule of acts. `owner` is a connection of the tables' owner, the only role that can move the clock."""

    def __init__(self, owner: Connection, days: int) -> None:
        self._owner = owner
        self._days = working_days(clock.now(), days)
        self._due: list[_Due] = []
        self._numbers = itertools.count()
        self.now = self._days[0]

    def on(self, day: int, minute: int, act: Act) -> None:
        """Adds an act at a minute of a working day."""
        self.at(self._days[day] + timedelta(minutes=minute), act)

    def after(self, minutes: float, act: Act) -> None:
        """Adds an act that many minutes after the current act."""
        self.at(self.now + timedelta(minutes=minutes), act)

    def at(self, at: datetime, act: Act) -> None:
        """Adds an act at an instant."""
        heapq.heappush(self._due, _Due(at, next(self._numbers), act))

    async def run(self, settle: Act) -> None:
        """Runs the acts that are due until now, and `settle` after each group of acts. Leaves out acts in the future."""
        while self._due and self._due[0].at < clock.now():
            first = self._due[0].at
            await self.move(first)
            acts = []
            while self._due and self._due[0].at < min(first + _TOGETHER, clock.now()):
                acts.append(heapq.heappop(self._due).act)
            for start in range(0, len(acts), _AT_ONCE):
                await asyncio.gather(*(act() for act in acts[start : start + _AT_ONCE]))
            await settle()

    async def move(self, to: datetime | None = None) -> None:
        """Sets the clock to an instant, by default to the present."""
        self.now = to or clock.now()
        await move_clock(self._owner, self.now - clock.now() if to else timedelta())
