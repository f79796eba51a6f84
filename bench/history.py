"""Years of orders as rows for COPY. What an order is, whom it goes to and what becomes of it follows from its number alone.

What people filter and search by is had by half of the orders, by a few of a hundred, or by one in many thousands: gifts, sources,
accounts, who placed them, states, names and words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TypeVar

from largesse.encryption.vault import Vault
from largesse.lines.codes import SealedCodes, draw_codes
from largesse.orders.ids import new_reference
from largesse.reports.search import words_of, words_of_order

VALUE_MINOR = 1_000
TOTAL_MINOR = 2 * VALUE_MINOR
# One in so many is of what is rare, was cancelled, or had its mail refused.
RARE, CANCELLED, BOUNCED = 20_011, 5_003, 9_973
SCHEDULED = 50  # of the last
_COLLECTION, _OF_PEOPLE = 10, 9  # one in so many
_SOURCES = ("api", "crm", "onboarding", "birthdays", "survey")
_TEAMS = 11
_MESSAGES = (
    None,
    "Thank you for a wonderful year!",
    None,
    "Happy birthday from all of us",
    None,
    "Congratulations",
    None,
    "Welcome to the team",
)
_FIRST_NAMES = (
    *("Ada", "Ben", "Chloe", "Dan", "Emma", "Finn", "Grace", "Hugo", "Iris", "Jack", "Kim", "Liam", "Mia", "Noah"),
)
_LAST_NAMES = 4_001
_GUESTS = 1_700_003
_NULL = "\\N"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class World:
    """Whose orders they are, and of what they are made, by id; the last of each is rare."""

    customer: int
    bots: Sequence[int]
    people: Sequence[int]
    products: Sequence[int]
    collections: Sequence[int]
    payers: Sequence[int]
    sales: int


@dataclass(frozen=True, slots=True)
class Times:
    """When orders were placed: the first at `began`, then one each `step`."""

    began: datetime
    step: timedelta

    def of(self, number: int) -> datetime:
        """When the order with that number was."""
        return self.began + number * self.step


ORDER_COLUMNS = (
    "id", "reference", "customer_id", "environment", "service_account_id", "user_id", "source", "external_reference",
    "gift_selection", "product_id", "collection_id", "country", "currency", "value_minor", "total_minor", "code_count",
    "recipient_count", "delivery_mode", "wrapping_key", "from_name", "message", "account_id", "created_at",
)  # fmt: skip
LINE_COLUMNS = (
    "customer_id", "order_id", "number", "recipient_email", "recipient_name", "code_lookup", "sealed"
)  # fmt: skip
WORD_COLUMNS = ("customer_id", "environment", "word", "created_at", "order_id")


@dataclass(frozen=True, slots=True)
class Rows:
    """Orders, their lines and the words they are found by, in COPY's text format."""

    orders: list[str]
    lines: list[str]
    words: list[str]


def make_rows(vault: Vault, world: World, times: Times, numbers: range, *, words: bool) -> Rows:
    """The orders of those numbers, each with two lines whose codes open, and their words where those are wanted."""
    made = Rows([], [], [])
    drawn = draw_codes(2 * len(numbers))
    for number in numbers:
        at = times.of(number)
        told = at.isoformat()
        reference, own = new_reference(at), f"bench000-{number:011d}"
        texts = (f"People Team {number % _TEAMS}", _MESSAGES[number % len(_MESSAGES)])
        guests = _guest(2 * number), _guest(2 * number + 1)
        made.orders.append(_order(world, number, reference, own, texts, told))
        one, two = SealedCodes(vault, [drawn.pop(), drawn.pop()], reference)
        made.lines.append(
            f"{world.customer}\t{number}\t1\t{guests[0][0]}\t{guests[0][1]}\t{one.lookup}\t\\\\x{one.sealed.hex()}\n"
            f"{world.customer}\t{number}\t2\t{guests[1][0]}\t{guests[1][1]}\t{two.lookup}\t\\\\x{two.sealed.hex()}\n"
        )
        if words:
            found = _words(own, texts, guests)
            if number == numbers.start and found != words_of_order(own, texts, guests):
                raise AssertionError("an order is found by other words")
            before, behind = f"{world.customer}\tproduction\t", f"\t{told}\t{number}\n"
            made.words.extend(before + word + behind for word in found)
    return made


def _order(world: World, number: int, reference: str, own: str, texts: Sequence[str | None], at: str) -> str:
    by_person = bool(world.people) and number % _OF_PEOPLE == 0
    of_collection = bool(world.collections) and number % _COLLECTION == 3
    placer = _skewed(world.people if by_person else world.bots, number, 1_009)
    gift = _skewed(world.collections if of_collection else world.products, number, 997)
    return "\t".join((
        f"{number}\t{reference}\t{world.customer}\tproduction",
        f"{_NULL}\t{placer}\tweb" if by_person else f"{placer}\t{_NULL}\t{_skewed(_SOURCES, number, 991)}",
        own,
        f"gifts\t{_NULL}\t{gift}" if of_collection else f"gift\t{gift}\t{_NULL}",
        f"GB\tGBP\t{VALUE_MINOR}\t{TOTAL_MINOR}\t2\t2\tsend\tdefault\t{texts[0]}\t{texts[1] or _NULL}",
        f"{_skewed(world.payers, number, 983)}\t{at}\n",
    ))  # fmt: skip


def _skewed(choices: Sequence[_T], number: int, prime: int) -> _T:
    """One of the choices: the first often, each further one less often, and the last once in RARE."""
    if number % RARE == prime % 7:
        return choices[-1]
    common = max(len(choices) - 1, 1)
    return choices[int((number * 389 % prime / prime) ** 3 * common)]


def _guest(number: int) -> tuple[str, str]:
    """A recipient: the same few names over and over, addresses that come back now and then."""
    first = _FIRST_NAMES[number % len(_FIRST_NAMES)]
    return f"guest{number * 7_919 % _GUESTS:07d}@example.com", f"{first} Guest{number % _LAST_NAMES}"


def _words(own: str, texts: Iterable[str | None], guests: Iterable[tuple[str, str]]) -> set[str]:
    """By which words the product finds such an order, without looking at each text anew."""
    found = {own, *own.split("-")}
    for text in texts:
        if text:
            found |= _words_of(text)
    for email, name in guests:
        found |= _words_of(name)
        found.add(email)
        found.add(email.partition("@")[0])
    return found


@cache
def _words_of(text: str) -> set[str]:
    return words_of(text)
