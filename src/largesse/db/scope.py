"""For whom a transaction acts. Whoever takes a connection says so, and all that begins on it while it is lent acts for them.

    for_customer(id, environment)   a customer in one environment; `for_customers` for a batch of several
    LOOKUP                          nobody yet: who calls is looked up by a key, a line by its code; or what is nobody's, such as
                                    sequences, and what is everybody's, such as the catalogue in memory
    WORKER                          the worker: delivers, expires and prunes, whosever it is
    OPERATOR                        commands, and what a process does as it starts

The connection keeps it, and a transaction for customers tells the database with BEGIN, in the same message, by two settings that end
with it: `largesse.customers` and `largesse.environments`, arrays of ids and of environments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto


class Actor(Enum):
    """Who acts."""

    CUSTOMERS = auto()
    LOOKUP = auto()
    WORKER = auto()
    OPERATOR = auto()


@dataclass(frozen=True, slots=True)
class Scope:
    """For whom transactions act. `customers` are pairs of id and environment, where they act for customers and else none."""

    actor: Actor
    customers: frozenset[tuple[int, str]] = frozenset()

    def __post_init__(self) -> None:
        if (self.actor is Actor.CUSTOMERS) is not bool(self.customers):
            raise ValueError("customers act, or somebody else does")
        if not all(environment.isalpha() for _, environment in self.customers):
            raise ValueError("an environment is a word")

    def includes(self, other: Scope) -> bool:
        """Whether it acts for all customers of another, and more."""
        return bool(other.customers) and other.customers <= self.customers

    @property
    def said(self) -> str:
        """SQL that says so to the transaction that it is in; nothing where no customers act."""
        if not self.customers:
            return ""
        customers = ",".join(str(int(number)) for number in sorted({number for number, _ in self.customers}))
        environments = ",".join(sorted({environment for _, environment in self.customers}))
        return (
            f"SET LOCAL largesse.customers = '{{{customers}}}'; SET LOCAL largesse.environments = '{{{environments}}}';"
        )


LOOKUP = Scope(Actor.LOOKUP)
WORKER = Scope(Actor.WORKER)
OPERATOR = Scope(Actor.OPERATOR)


def for_customer(customer_id: int, environment: str) -> Scope:
    """The scope of one customer."""
    return Scope(Actor.CUSTOMERS, frozenset(((customer_id, environment),)))


def for_customers(customers: Iterable[tuple[int, str]]) -> Scope:
    """The scope of some customers, each an id and an environment. Raises ValueError for none."""
    return Scope(Actor.CUSTOMERS, frozenset(customers))
