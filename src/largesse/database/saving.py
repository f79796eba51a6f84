"""Bringing the rows of one table in line with what is wanted: whole lists at a time, found by key, written only where different.

A row that agrees already is not touched, and a statement with nothing to do is not sent: a trigger for each
statement (`catalogue_changed`) fires even when no row is hit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from largesse.database.pool import Connection, Row

Values = Mapping[str, Any]  # of a row, by column


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of the rows, in their order."""

    ids: list[int]
    created: list[bool]
    kept: list[bool]  # differ, and were left as they are


class FixedColumn(Exception):
    """The row at `place` among those wanted has another value in a column that is settled when a row is created."""

    def __init__(self, place: int, column: str, was: object) -> None:
        super().__init__(f"{column} cannot change")
        self.place = place
        self.column = column
        self.was = was


@dataclass(frozen=True, slots=True)
class Table:
    """A table, and which of its columns are wanted so or so; the room that owns the table names it.

    `columns` gives each its SQL type. A row is found by `match`, a condition on `saved` and `new`. Columns in
    `fixed` are settled when it is created: another value is refused. Those in `unwatched` are written with the
    row, but a difference in them alone is no reason to write it. Rows of which `kept`, a condition on `saved`, holds are left as they are.
    """

    name: str
    columns: Mapping[str, str]
    match: str
    fixed: tuple[str, ...] = ()
    unwatched: tuple[str, ...] = ()
    kept: str = "false"

    @property
    def find(self) -> str:
        """Each new row with the id of the one saved, if any, and whether that is different."""
        watched = [name for name in self.columns if name not in self.fixed and name not in self.unwatched]
        old, new = (", ".join(f"{row}.{name}" for name in watched) for row in ("saved", "new"))
        differs = f"ROW({old}) IS DISTINCT FROM ROW({new})" if watched else "false"
        fixed = "".join(f", saved.{name} AS {name}" for name in self.fixed)
        return (
            f"SELECT saved.id AS saved_id, {differs} AS differs, {self.kept} AS kept{fixed} "  # noqa: S608 - put together from constants
            f"FROM {self._new} LEFT JOIN {self.name} AS saved ON {self.match} ORDER BY new.n"
        )

    @property
    def insert(self) -> str:
        """Adds rows, with ids in the order wanted."""
        names = ", ".join(self.columns)
        return f"INSERT INTO {self.name} ({names}) SELECT {names} FROM {self._new} ORDER BY n"  # noqa: S608 - as above

    @property
    def update(self) -> str:
        """Overwrites rows by id."""
        values = ", ".join(f"{name} = new.{name}" for name in self.columns if name not in self.fixed)
        return f"UPDATE {self.name} AS saved SET {values} FROM {self._new} WHERE saved.id = new.saved_id"  # noqa: S608 - as above

    @property
    def _new(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"jsonb_to_recordset($1::text::jsonb) AS new (n integer, saved_id integer, {columns})"

    async def save(self, connection: Connection, rows: Sequence[Values]) -> Saved:
        """Adds the rows that are missing and overwrites those that differ; never deletes. Raises FixedColumn."""
        if not rows:
            return Saved([], [], [])
        found = await connection.fetch(self.find, _json(rows))
        for place, (row, old) in enumerate(zip(rows, found, strict=True)):
            self._check_fixed(place, row, old)
        changed = [
            {**row, "saved_id": old["saved_id"]}
            for row, old in zip(rows, found, strict=True)
            if old["saved_id"] is not None and old["differs"] and not old["kept"]
        ]
        if changed:
            await connection.execute(self.update, _json(changed))
        ids: list[int | None] = [old["saved_id"] for old in found]
        missing = [number for number, saved_id in enumerate(ids) if saved_id is None]
        if missing:
            added = _json(rows[number] for number in missing)
            await connection.execute(self.insert, added)
            for number, new in zip(missing, await connection.fetch(self.find, added), strict=True):
                ids[number] = new["saved_id"]
        created = set(missing)
        return Saved(
            [saved_id for saved_id in ids if saved_id is not None],
            [n in created for n in range(len(ids))],
            [bool(old["saved_id"] and old["differs"] and old["kept"]) for old in found],
        )

    def _check_fixed(self, place: int, row: Values, old: Row) -> None:
        for name in self.fixed:
            if old["saved_id"] is not None and old[name] != row[name]:
                raise FixedColumn(place, name, old[name])


def _json(rows: Iterable[Values]) -> str:
    return json.dumps([{"n": n, **values} for n, values in enumerate(rows)])
