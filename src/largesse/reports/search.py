"""The words of orders for searches. Stored texts and search texts are split in the same way.

A search word matches all stored words that begin with it. If these words have few orders, all of the orders are read. Otherwise orders are
read newest first. If too many words begin with it, only the first ones in the alphabet are used.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from largesse.base.email import email_key
from largesse.base.text import folded
from largesse.db.fragments import Fragment, compose, join
from largesse.db.pool import Connection
from largesse.orders.ids import is_end_of_reference, is_reference
from largesse.orders.listing import find_by_end
from largesse.reports.filters import OrderFilter, Position

_OF_REFERENCE = "SELECT created_at, id FROM orders WHERE reference = $1 AND customer_id = $2 AND environment = $3"
_WORDS_STORED = """
    WITH RECURSIVE stored (word, at) AS (
        (SELECT word, 1 FROM report_words
         WHERE customer_id = $1 AND environment = $2 AND word >= $3 AND word < $4 ORDER BY word LIMIT 1)
        UNION ALL
        SELECT (SELECT word FROM report_words
                WHERE customer_id = $1 AND environment = $2 AND word > stored.word AND word < $4
                ORDER BY word LIMIT 1), at + 1
        FROM stored WHERE stored.word IS NOT NULL AND at <= $5)
    SELECT word FROM stored WHERE word IS NOT NULL
"""
_ORDERS_AMONG = """
    SELECT o.order_id FROM unnest($5::text[]) AS meant (word)
    CROSS JOIN LATERAL (
        SELECT order_id FROM report_words
        WHERE customer_id = $1 AND environment = $2 AND word = meant.word AND created_at BETWEEN $3 AND $4
        LIMIT $6) AS o
    LIMIT $6
"""

MAX_WORD = 64  # characters; longer words are cut
_SHORTEST = 2
_PARTS = re.compile(r"[^\W_]+")


def words_of(text: str | None) -> set[str]:
    """Returns the normalised words of a text, without single characters."""
    found = _PARTS.findall(folded(text)) if text else ()
    return {word[:MAX_WORD] for word in found if len(word) >= _SHORTEST}


def whole(text: str) -> str:
    """Returns an address or a reference as a single word, which searches find by the whole or by its beginning."""
    return email_key(text.strip())


def words_of_recipient(email: str | None, name: str | None) -> Iterator[str]:
    """Returns the words of a recipient: the address, its parts before the @, and the name."""
    if email:
        yield whole(email)
        yield from words_of(email.rpartition("@")[0])
    yield from words_of(name)


def words_of_order(
    reference: str | None,
    texts: Iterable[str | None],
    recipients: Iterable[tuple[str | None, str | None]],
    words_of_text: Callable[[str | None], set[str]] = words_of,
) -> set[str]:
    """Returns all words of an order: of its external reference, its texts, and its recipients, each an address and a name.

    Pass a cached `words_of` for many orders, as they often share their texts.
    """
    words = {whole(reference), *words_of(reference)} if reference else set()
    for text in texts:
        words |= words_of_text(text)
    for email, name in recipients:
        words.update(words_of_recipient(email, name))
    words.discard("")
    return words


MAX_TERMS = 8  # terms of one search; further ones are ignored
MAX_MEANT = 25  # stored words that are used for a search word
LOOKED_AT = 2_000  # orders that are read at once
_LAST = "\U0010ffff"


class Term(NamedTuple):
    """A search word: all its orders if they are few, otherwise the stored words that are read.

    `is_cut` means that more stored words begin with it than are read.
    """

    typed: str
    orders: frozenset[Position] | None
    words: list[str]
    is_cut: bool = False

    @property
    def is_few(self) -> bool:
        """Whether its orders are known."""
        return self.orders is not None


async def read_terms(connection: Connection, wanted: OrderFilter) -> list[Term]:
    """Returns the terms of a filter's search. An order must match all of them.

    Leaves out single characters, such as the `M.` of `Ada M. Byron` and the `&` of `Fish & Chips`, as they are not stored.
    """
    terms = []
    for typed in wanted.search.split()[:MAX_TERMS]:
        term = await _read_term(connection, wanted, typed, {whole(typed), folded(typed)[:MAX_WORD]})
        if term.orders or not term.is_few:
            terms.append(term)
        else:  # such as `smith-jones`, which is stored as two words
            terms += [await _read_term(connection, wanted, part, {part}) for part in sorted(words_of(typed))]
    return terms


async def _read_term(connection: Connection, wanted: OrderFilter, typed: str, beginnings: Iterable[str]) -> Term:
    ranges = sorted(beginning for beginning in beginnings if len(beginning) >= _SHORTEST)
    orders = await _of_reference(connection, wanted, typed.upper())
    for beginning in ranges:
        rows = await connection.fetch(_FEW, *_range(wanted, beginning), LOOKED_AT - 1)
        if rows and rows[0]["order_id"] is None:
            return await _common(connection, wanted, typed, ranges)
        orders.update(Position(*row) for row in rows)
    return Term(typed, frozenset(orders), [])


# The orders of words with that beginning. If there are more than $5, which is too many, one row of nulls.
_FEW = """
    WITH many AS MATERIALIZED (
        SELECT FROM report_words WHERE customer_id = $1 AND environment = $2 AND word >= $3 AND word < $4 OFFSET $5 LIMIT 1)
    SELECT NULL::timestamptz AS created_at, NULL::int AS order_id FROM many
    UNION ALL
    SELECT created_at, order_id FROM report_words
    WHERE customer_id = $1 AND environment = $2 AND word >= $3 AND word < $4 AND NOT EXISTS (SELECT FROM many)
"""


async def _of_reference(connection: Connection, wanted: OrderFilter, typed: str) -> set[Position]:
    """Returns the order with this reference, or those of the newest orders whose reference ends in `typed`, as in `…7Q2ZD4`."""
    end = typed.removeprefix("…")
    if is_reference(typed):
        rows = await connection.fetch(_OF_REFERENCE, typed, wanted.customer_id, wanted.environment)
    elif is_end_of_reference(end) and (end != typed or not end.isalpha()):  # else a name, such as Anders
        rows = await find_by_end(connection, (wanted.customer_id, wanted.environment), end, LOOKED_AT)
    else:
        rows = []
    return {Position(*row) for row in rows}


async def _common(connection: Connection, wanted: OrderFilter, typed: str, beginnings: Sequence[str]) -> Term:
    """Returns a term of many orders. Reads its words from the index, without their orders."""
    found: set[str] = set()
    is_cut = False
    for beginning in beginnings:
        rows = await connection.fetch(_WORDS_STORED, *_range(wanted, beginning), MAX_MEANT)
        is_cut = is_cut or len(rows) > MAX_MEANT
        found.update(row["word"] for row in rows[:MAX_MEANT])
    return Term(typed, None, sorted(found), is_cut)


def _range(wanted: OrderFilter, beginning: str) -> tuple[int, str, str, str]:
    return wanted.customer_id, wanted.environment, beginning, beginning + _LAST


_OF_WORD = """
        (SELECT created_at, order_id FROM report_words
         WHERE customer_id = $1 AND environment = $2 AND word = ${at} AND {bounds} ORDER BY {order} LIMIT $6)
        """
_CANDIDATES = """
    SELECT array_agg(order_id ORDER BY {order}) AS order_ids, min(created_at) AS earliest, max(created_at) AS latest
    FROM (SELECT DISTINCT created_at, order_id FROM ({of_words}) AS of_word ORDER BY {order} LIMIT $6) AS candidate
"""


class Candidates(NamedTuple):
    """Orders that may be in a result: their ids in the order of the list, and the creation times of the oldest and the newest."""

    order_ids: list[int]
    earliest: datetime
    latest: datetime


async def read_candidates(
    connection: Connection,
    wanted: OrderFilter,
    term: Term,
    bounds: Fragment,
    order: Fragment,
    arguments: Sequence[object],
    limit: int,
) -> Candidates | None:
    """Returns the first orders with one of a common term's words, within the bounds and in the sort order of `finder`; None if there are none."""
    # The index returns each word's orders in the order of the list. They are merged, so that only wanted orders are read.
    of_words = [compose(_OF_WORD, at=at, bounds=bounds, order=order) for at, _ in enumerate(term.words, 7)]
    row = await connection.fetchrow(
        compose(_CANDIDATES, of_words=join(Fragment(" UNION ALL "), of_words), order=order),
        wanted.customer_id,
        wanted.environment,
        *arguments,
        limit,
        *term.words,
    )
    return Candidates(*row) if row is not None and row[0] else None


async def read_orders_among(
    connection: Connection, wanted: OrderFilter, term: Term, candidates: Candidates
) -> frozenset[int] | None:
    """Returns the ids of orders from the time of the candidates that have one of the term's words; None if there are more than LOOKED_AT."""
    rows = await connection.fetch(
        _ORDERS_AMONG,
        wanted.customer_id,
        wanted.environment,
        candidates.earliest,
        candidates.latest,
        term.words,
        LOOKED_AT + 1,
    )
    return frozenset(row[0] for row in rows) if len(rows) <= LOOKED_AT else None
