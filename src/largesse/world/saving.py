"""Handing what a file wants to the rooms that own the tables, and telling of what they refuse by its place in the file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from largesse.base.errors import StartError
from largesse.database.pool import Connection
from largesse.database.saving import FixedColumn, Saved, Values
from largesse.world.document import Place

_FIELDS = {"customer_id": "customer", "service_account_id": "service_account"}  # as the file calls them

Saving = Callable[[Connection, Sequence[Values]], Awaitable[Saved]]


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row as the file wants it, by column."""

    place: Place
    values: Values


async def save(connection: Connection, saving: Saving, rows: Sequence[NewRow]) -> Saved:
    """Has `saving` add the rows that are missing and overwrite those that differ.

    Raises StartError, with the place in the file, where a column would change that cannot.
    """
    try:
        return await saving(connection, [row.values for row in rows])
    except FixedColumn as fixed:
        was = f", and is {fixed.was}" if isinstance(fixed.was, str) else ""
        field = _FIELDS.get(fixed.column, fixed.column)
        mistake = rows[fixed.place].place.mistake(field, f"cannot change once it is loaded{was}")
        raise StartError(mistake) from None
