"""Views of the list of orders that people save: a name, and the filters and the order of the list."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.base.errors import InvalidRequest, NotFound
from largesse.customers.actor import Actor
from largesse.customers.roles import Right
from largesse.db.pool import Connection

MOST_VIEWS = 20  # of a person
MAX_NAME = 60  # characters
MAX_QUERY = 500  # characters


@dataclass(frozen=True, slots=True)
class SavedView:
    """A saved view. `query` has the parameters of the list's address."""

    id: int
    name: str
    query: str


class TooManyViews(InvalidRequest):
    """The person has as many views as they may."""

    def __init__(self) -> None:
        super().__init__(f"A person has at most {MOST_VIEWS} saved views.")


async def list_views(connection: Connection, customer_id: int, environment: str, user_id: int) -> list[SavedView]:
    """Returns a person's views in an environment, by name."""
    rows = await connection.fetch(_LIST, customer_id, environment, user_id)
    return [SavedView(**row) for row in rows]


async def save_view(actor: Actor, name: str, query: str) -> None:
    """Saves a view of the person, and replaces one with the same name. Raises TooManyViews, and InvalidRequest if the name or query is too long."""
    if not 0 < len(name) <= MAX_NAME:
        raise InvalidRequest(f"`name` must have 1 to {MAX_NAME} characters.")
    if len(query) > MAX_QUERY:
        raise InvalidRequest(f"`query` must be at most {MAX_QUERY} characters.")
    async with actor.transaction(Right.SEE_ORDERS) as transaction:
        connection, key = transaction.connection, (actor.customer_id, actor.environment, actor.user_id)
        await connection.execute(_LOCK_PERSON, actor.user_id)
        names = [row["name"] for row in await connection.fetch(_LIST, *key)]
        if name not in names and len(names) >= MOST_VIEWS:
            raise TooManyViews
        await connection.execute(_SAVE, *key, name, query)


async def remove_view(actor: Actor, view_id: int) -> None:
    """Removes a view of the person. Raises NotFound."""
    async with actor.transaction(Right.SEE_ORDERS) as transaction:
        removed = await transaction.connection.fetchval(
            _REMOVE, actor.customer_id, view_id, actor.user_id, actor.environment
        )
    if removed is None:
        raise NotFound("There is no such view.")


_LIST = """
    SELECT id, name, query FROM saved_views WHERE customer_id = $1 AND environment = $2 AND user_id = $3 ORDER BY name, id
"""
# Makes two views that are saved at once count one after the other.
_LOCK_PERSON = "SELECT pg_advisory_xact_lock(hashtextextended('saved_views', $1))"
_SAVE = """
    INSERT INTO saved_views (customer_id, environment, user_id, name, query) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (customer_id, environment, user_id, name) DO UPDATE SET query = excluded.query
"""
_REMOVE = (
    "DELETE FROM saved_views WHERE customer_id = $1 AND id = $2 AND user_id = $3 AND environment = $4 RETURNING id"
)
