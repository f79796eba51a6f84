"""Scopes: the customers for which a transaction acts. A connection is taken from the pool with a scope, which applies to all its transactions.

    for_customer(id, environment)   a customer in one environment; `for_customers` for a batch of several, `for_lists` for pages with lists
    LOOKUP                          no customer yet: looks up a caller by a key, or a line by its code. Also for data of no customer,
                                    such as sequences, or of all, such as the catalogue in memory
    WORKER                          the worker: delivers, expires and prunes for all customers
    OFFICE                          members of staff, who act for all customers
    OPERATOR                        commands, and the start of a process

The connection stores the scope. A transaction for customers sets it with BEGIN, in the same message, by two settings that end with the
transaction: `largesse.customers` and `largesse.environments`, arrays of ids and of environments.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

import msgspec

Place = tuple[int, str]  # a customer's id and an environment


class Actor(Enum):
    """The kind of actor that a scope is for."""

    CUSTOMERS = auto()
    LOOKUP = auto()
    WORKER = auto()
    OFFICE = auto()
    OPERATOR = auto()


class Planning(Enum):
    """How statements are planned among many customers with few rows, where the planner expects few of each. The value is the SQL that sets it.

    With `FOR_VALUES`, each statement is planned for its arguments. Otherwise a statement may have a plan for any arguments from the sixth time
    on, which reads all rows of a large customer. With `IN_ORDER`, rows are read in the order of an index. Otherwise the first rows of a large
    customer may be found by reading and sorting all of them.
    """

    USUAL = ""
    FOR_VALUES = " SET LOCAL plan_cache_mode = force_custom_plan;"
    IN_ORDER = " SET LOCAL enable_sort = off;"


class Scope(msgspec.Struct, frozen=True):
    """The scope of transactions. `customers` are pairs of id and environment, empty unless customers act."""

    actor: Actor
    customers: frozenset[Place] = frozenset()
    planning: Planning = Planning.USUAL

    def __post_init__(self) -> None:
        if (self.actor is Actor.CUSTOMERS) is not bool(self.customers):
            raise ValueError("a scope has customers if customers act, and only then")
        if not all(environment.isalpha() for _, environment in self.customers):
            raise ValueError("an environment must have only letters")

    def includes(self, other: Scope) -> bool:
        """Returns whether this scope has all customers of another scope, in any environment."""
        ids = {customer_id for customer_id, _ in self.customers}
        return bool(other.customers) and ids >= {customer_id for customer_id, _ in other.customers}

    @property
    def said(self) -> str:
        """Returns the SQL that sets the scope in its transaction; empty unless customers act."""
        if not self.customers:
            return ""
        customers = ",".join(str(int(number)) for number in sorted({number for number, _ in self.customers}))
        environments = ",".join(sorted({environment for _, environment in self.customers}))
        return (
            f"SET LOCAL largesse.customers = '{{{customers}}}'; SET LOCAL largesse.environments = '{{{environments}}}';"
            f"{self.planning.value}"
        )


LOOKUP = Scope(Actor.LOOKUP)
WORKER = Scope(Actor.WORKER)
OFFICE = Scope(Actor.OFFICE)
OPERATOR = Scope(Actor.OPERATOR)


def for_customer(customer_id: int, environment: str) -> Scope:
    """Returns the scope of one customer."""
    return Scope(Actor.CUSTOMERS, frozenset(((customer_id, environment),)))


def for_lists(customer_id: int, environment: str) -> Scope:
    """Returns the scope of a page that lists rows of a customer, which may have many.

    With the planning such a page takes about a third longer. Other pages, and requests of API keys and recipients, do without.
    """
    return Scope(Actor.CUSTOMERS, frozenset(((customer_id, environment),)), Planning.FOR_VALUES)


def for_customers(customers: Iterable[Place], planning: Planning = Planning.USUAL) -> Scope:
    """Returns the scope of some customers, each an id and an environment. Raises ValueError if there are none."""
    return Scope(Actor.CUSTOMERS, frozenset(customers), planning)
