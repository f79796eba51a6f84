"""The SQL of contacts. Each contact belongs to a customer in one environment."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from largesse.base.email import address_pattern, email_key
from largesse.base.errors import existing
from largesse.base.text import like_containing, search_words
from largesse.contacts.model import MOST_COUNTED, Contact, sought
from largesse.db.fragments import NOTHING, Fragment, compose, holds_address
from largesse.db.pipeline import Statement
from largesse.db.pool import Connection, Row
from largesse.db.scope import Place, Planning
from largesse.db.statements import count_changed, plan_for_values, plan_in_order, run_together

_encode = msgspec.json.Encoder().encode
_FIELDS = msgspec.json.Decoder(dict[str, str])

# Changes to a customer's contacts run one at a time, so that none exceeds a limit and no two can deadlock.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('contacts/' || $2::text, $1::bigint))"

# OFFSET makes the planner begin with the few groups of a contact. It expects a customer to have one group, and would look each of up to 200 up.
_COLUMNS = Fragment("""
    c.id, c.email, c.name, c.language, c.country, c.birthday, c.start_date, c.external_id,
    c.own_fields::text AS own_fields, c.left_at IS NULL AS is_active, c.sealed_address IS NOT NULL AS has_address,
    ARRAY(SELECT g.name FROM (SELECT customer_id, group_id FROM contact_members
                              WHERE customer_id = c.customer_id AND contact_id = c.id OFFSET 0) AS m
          JOIN contact_groups g ON g.customer_id = m.customer_id AND g.id = m.group_id ORDER BY lower(g.name)) AS groups
""")
_SELECT = compose("SELECT {columns} FROM contacts c", columns=_COLUMNS)
_HERE = Fragment("WHERE c.customer_id = $1 AND c.environment = $2")
_ONE = compose("{select} {here} AND c.id = $3", select=_SELECT, here=_HERE)
_FOUND = compose(
    "{select} {here} AND (c.email_key = ANY($3::text[]) OR c.external_id = ANY($4::text[]) OR c.id = ANY($5::int[]))",
    select=_SELECT,
    here=_HERE,
)
# The contacts that a list shows: those with each word ($3), active or left ($4), and in a group ($5).
_SHOWN = Fragment("AND c.sought LIKE ALL($3::text[]) AND ($4::bool IS NULL OR (c.left_at IS NULL) = $4)")
# The planner expects few contacts with a word, and would read and sort all of a customer for the first page of those with a common one. It expects
# that CASE is true for half of them, and reads them in the order of the list.
_SHOWN_SORTED = Fragment(
    "AND CASE WHEN c.sought LIKE ALL($3::text[]) THEN true END AND ($4::bool IS NULL OR (c.left_at IS NULL) = $4)"
)


def _listed(after: Fragment, order: Fragment) -> dict[bool, Fragment]:
    """Returns SQL for a page of contacts. The members of a small group (True) are found by their ids, otherwise contacts are read in the order of the list.

    The page is found first, so that the planner can avoid its sort: the groups of each contact are sorted, too.
    """
    return {
        is_small: compose(
            """
            WITH c AS MATERIALIZED (SELECT c.* FROM contacts c {here} {shown} {grouped} {after} ORDER BY {order} LIMIT $6)
            SELECT {columns} FROM c ORDER BY {order}
            """,
            columns=_COLUMNS,
            here=_HERE,
            shown=_SHOWN if is_small else _SHOWN_SORTED,
            grouped=grouped,
            after=after,
            order=order,
        )
        for is_small, grouped in _IN_GROUP.items()
    }


_IN_GROUP = {
    True: Fragment("AND c.id = ANY($5::int[])"),
    False: Fragment("""
        AND ($5::int IS NULL OR EXISTS (
            SELECT FROM contact_members m WHERE m.customer_id = c.customer_id AND m.group_id = $5 AND m.contact_id = c.id))
    """),
}
_FIRST = _listed(NOTHING, Fragment("c.sought, c.id"))
_AFTER = _listed(Fragment("AND (c.sought, c.id) > ($7, $8)"), Fragment("c.sought, c.id"))
_BEFORE = _listed(Fragment("AND (c.sought, c.id) < ($7, $8)"), Fragment("c.sought DESC, c.id DESC"))
_BY_ID = _listed(Fragment("AND c.id > $7"), Fragment("c.id"))
# Reads the members of a large group once, and does not look each contact up.
_COUNT = {
    is_small: compose(
        "SELECT count(*) FROM (SELECT FROM contacts c {here} {shown} {grouped} LIMIT $6) AS counted",
        here=_HERE,
        shown=_SHOWN,
        grouped=grouped,
    )
    for is_small, grouped in {
        True: _IN_GROUP[True],
        False: Fragment(
            "AND ($5::int IS NULL OR c.id IN (SELECT contact_id FROM contact_members m WHERE m.customer_id = $1 AND m.group_id = $5))"
        ),
    }.items()
}
_MEMBERS = (
    "SELECT contact_id FROM contact_members WHERE customer_id = $1 AND environment = $2 AND group_id = $3 LIMIT $4"
)
_SMALL = 1_000  # members of a small group
_COUNT_ALL = "SELECT count(*) FROM contacts WHERE customer_id = $1 AND environment = $2"
_SOUGHT = "SELECT sought FROM contacts WHERE customer_id = $1 AND environment = $2 AND id = $3::bigint"
_ADDRESS = "SELECT sealed_address FROM contacts WHERE customer_id = $1 AND environment = $2 AND id = $3"

_NEW = Fragment("""
    json_to_recordset($3::text::json) AS new (id integer, email text, email_key text, name text, sought text, language text,
        country text, birthday smallint, start_date date, external_id text, own_fields jsonb, is_active boolean)
""")
_INSERT = compose(
    """
    INSERT INTO contacts (customer_id, environment, email, email_key, name, sought, language, country, birthday, start_date, external_id,
                          own_fields, left_at)
    SELECT $1, $2, email, email_key, name, sought, language, country, birthday, start_date, external_id, own_fields,
           CASE WHEN NOT is_active THEN (SELECT clock_now()) END
    FROM {new} RETURNING id, email_key
    """,
    new=_NEW,
)
# Names the ids once more: the planner expects the text to have a hundred contacts, and would read all of a large customer.
_UPDATE = compose(
    """
    UPDATE contacts c SET email = new.email, email_key = new.email_key, name = new.name, sought = new.sought, language = new.language,
        country = new.country, birthday = new.birthday, start_date = new.start_date, external_id = new.external_id,
        own_fields = new.own_fields, left_at = CASE WHEN NOT new.is_active THEN coalesce(c.left_at, (SELECT clock_now())) END,
        changed_at = (SELECT clock_now())
    FROM {new} WHERE c.customer_id = $1 AND c.environment = $2 AND c.id = new.id AND c.id = ANY($4::int[])
    """,
    new=_NEW,
)
# Replaces an address's key by the contact's id. An id has no @, so it cannot equal an address.
_FREE_KEYS = """
    UPDATE contacts SET email_key = id::text, external_id = NULL WHERE customer_id = $1 AND environment = $2 AND id = ANY($3::int[])
"""
_SEAL = """
    UPDATE contacts c SET sealed_address = new.sealed, changed_at = clock_now()
    FROM unnest($3::int[], $4::bytea[]) AS new (id, sealed)
    WHERE c.customer_id = $1 AND c.environment = $2 AND c.id = new.id
"""
_DELETE = "DELETE FROM contacts WHERE customer_id = $1 AND environment = $2 AND id = ANY($3::int[])"
# The recipients of the orders $2, newest first, each address once, with its last name. Reads at most $3 lines.
_PAST = """
    SELECT DISTINCT ON (lower(recipient_email)) recipient_email AS email, recipient_name AS name FROM (
        SELECT l.recipient_email, l.recipient_name, l.order_id
        FROM unnest($2::int[]) AS newest (order_id) JOIN lines l ON l.customer_id = $1 AND l.order_id = newest.order_id
        WHERE l.recipient_email IS NOT NULL AND l.recipient_email NOT LIKE '%@erased.invalid'
        LIMIT $3) AS sent
    ORDER BY lower(recipient_email), (recipient_name IS NULL), order_id DESC
"""
_WITH_ADDRESS = Fragment("FROM contacts WHERE email_key = $1 AND ($2::int IS NULL OR customer_id = $2)")
_EXPORT = compose(
    """
    SELECT k.key AS customer, c.customer_id, c.environment, c.id, c.email, c.name, c.language, c.country, c.sealed_address, c.birthday,
           c.start_date, c.external_id, c.own_fields::text AS own_fields, c.left_at, c.created_at,
           ARRAY(SELECT g.name FROM contact_members m JOIN contact_groups g ON g.customer_id = m.customer_id AND g.id = m.group_id
                 WHERE m.customer_id = c.customer_id AND m.contact_id = c.id ORDER BY g.name) AS groups
    FROM (SELECT * {with_address}) AS c JOIN customers k ON k.id = c.customer_id ORDER BY c.customer_id, c.id
    """,
    with_address=_WITH_ADDRESS,
)
_COUNT_WITH_ADDRESS = compose("SELECT count(*) {with_address}", with_address=_WITH_ADDRESS)
_DELETE_WITH_ADDRESS = compose("DELETE {with_address}", with_address=_WITH_ADDRESS)
# Contacts whose own fields name an address.
_HOLD_ADDRESS = compose(
    "WHERE {holds} AND ($2::int IS NULL OR customer_id = $2)", holds=holds_address(Fragment("lower(own_fields::text)"))
)
_MENTIONING = compose(
    "SELECT customer_id, id, own_fields::text AS own_fields FROM contacts {hold_address}", hold_address=_HOLD_ADDRESS
)
# The customers and environments of contacts that have the address, or name it in a field.
_PLACES = compose(
    """
    SELECT customer_id, environment {with_address}
    UNION SELECT customer_id, environment FROM contacts {hold_address} ORDER BY 1, 2
    """,
    with_address=_WITH_ADDRESS,
    hold_address=_HOLD_ADDRESS,
)
_REWRITE = "UPDATE contacts SET own_fields = $3::text::jsonb WHERE customer_id = $1 AND id = $2"


class Filter(msgspec.Struct, frozen=True):
    """A filter of contacts: with each word of `words`, active or left or both, and in a group."""

    words: str = ""
    is_active: bool | None = None
    group_id: int | None = None

    @property
    def arguments(self) -> tuple[list[str], bool | None, int | None]:
        """Returns the arguments $3 to $5 of the statements."""
        return (
            [like_containing(word) for word in search_words(self.words)[:_MOST_WORDS]],
            self.is_active,
            self.group_id,
        )


_MOST_WORDS = 10


async def lock_contacts(connection: Connection, place: Place) -> None:
    """Waits until other changes of the customer's contacts end, and blocks new ones until the transaction ends.

    Its statements are planned for the customer, who may have many contacts.
    """
    await run_together(connection, Statement(Planning.FOR_VALUES.value), Statement(_LOCK, place))


async def read_contact(connection: Connection, place: Place, contact_id: int) -> Contact:
    """Returns a contact of the customer. Raises NotFound."""
    return _contact(existing(await connection.fetchrow(_ONE, *place, contact_id), f"There is no contact {contact_id}."))


async def find_contacts(
    connection: Connection,
    place: Place,
    *,
    emails: Iterable[str] = (),
    external_ids: Iterable[str] = (),
    ids: Iterable[int] = (),
) -> list[Contact]:
    """Returns the contacts with one of those addresses, external ids or ids."""
    keys = [email_key(email) for email in emails]
    async with connection.transaction():
        await plan_for_values(connection)
        return [_contact(row) for row in await connection.fetch(_FOUND, *place, keys, list(external_ids), list(ids))]


async def list_contacts(
    connection: Connection,
    place: Place,
    shown: Filter,
    limit: int,
    *,
    after: int | None = None,
    before: int | None = None,
) -> list[Contact]:
    """Returns contacts by name: the first ones, or those after or before the contact with an id."""
    is_small, *arguments = *await _arguments(connection, place, shown), limit
    in_order = not (is_small or shown.words)  # all contacts may have none of the words: the planner decides
    edge = after if before is None else before
    at = None if edge is None else await connection.fetchval(_SOUGHT, *place, edge)
    if at is None:
        return await _page(connection, _FIRST[is_small], in_order, *arguments)
    if before is None:
        return await _page(connection, _AFTER[is_small], in_order, *arguments, at, edge)
    return (await _page(connection, _BEFORE[is_small], in_order, *arguments, at, edge))[::-1]


async def _page(connection: Connection, statement: Fragment, in_order: bool, *arguments: Any) -> list[Contact]:
    async with connection.transaction():
        if in_order:
            await plan_in_order(connection)
        return [_contact(row) for row in await connection.fetch(statement, *arguments)]


async def _arguments(connection: Connection, place: Place, shown: Filter) -> tuple[Any, ...]:
    """Returns whether a filter is of a small group, and the arguments $1 to $5 of a list."""
    if shown.group_id is not None:
        members = await connection.fetch(_MEMBERS, *place, shown.group_id, _SMALL + 1)
        if len(members) <= _SMALL:
            return True, *place, *shown.arguments[:2], [row["contact_id"] for row in members]
    return False, *place, *shown.arguments


async def list_by_id(connection: Connection, place: Place, shown: Filter, limit: int, after: int = 0) -> list[Contact]:
    """Returns the contacts after an id, in the order of ids. So no page repeats or misses contacts while others are added or deleted."""
    is_small, *arguments = await _arguments(connection, place, shown)
    return await _page(connection, _BY_ID[is_small], not is_small, *arguments, limit, after)


async def count_contacts(connection: Connection, place: Place, shown: Filter) -> int:
    """Returns how many contacts a list has in all, counted up to MOST_COUNTED + 1."""
    is_small, *arguments = await _arguments(connection, place, shown)
    return int(await connection.fetchval(_COUNT[is_small], *arguments, MOST_COUNTED + 1))


async def count_all(connection: Connection, place: Place) -> int:
    """Returns how many contacts the customer has."""
    return int(await connection.fetchval(_COUNT_ALL, *place))


async def read_sealed_address(connection: Connection, place: Place, contact_id: int) -> bytes | None:
    """Returns the encrypted postal address of a contact."""
    sealed: bytes | None = await connection.fetchval(_ADDRESS, *place, contact_id)
    return sealed


async def insert_contacts(connection: Connection, place: Place, contacts: Sequence[Contact]) -> dict[str, int]:
    """Adds contacts. Returns their ids by the key of their address."""
    if not contacts:
        return {}
    rows = await connection.fetch(_INSERT, *place, _encode([_columns(one) for one in contacts]).decode())
    return {row["email_key"]: row["id"] for row in rows}


async def free_keys(connection: Connection, place: Place, ids: Collection[int]) -> None:
    """Frees the addresses and external ids of contacts, so that others can get them. `update_contacts` sets the new ones afterwards."""
    if ids:
        await connection.execute(_FREE_KEYS, *place, list(ids))


async def update_contacts(connection: Connection, place: Place, contacts: Sequence[Contact]) -> None:
    """Replaces contacts by id."""
    if contacts:
        await connection.execute(
            _UPDATE, *place, _encode([_columns(one) for one in contacts]).decode(), [one.id for one in contacts]
        )


async def save_addresses(connection: Connection, place: Place, sealed: Mapping[int, bytes | None]) -> None:
    """Replaces encrypted postal addresses by the contact's id."""
    if sealed:
        await connection.execute(_SEAL, *place, list(sealed), list(sealed.values()))


async def delete_contacts(connection: Connection, place: Place, ids: Collection[int]) -> int:
    """Deletes contacts by id. Returns how many there were."""
    return await count_changed(connection, _DELETE, *place, list(ids))


async def list_past_recipients(
    connection: Connection, customer_id: int, order_ids: Sequence[int], lines: int
) -> list[tuple[str, str | None]]:
    """Returns address and name of the recipients of these orders, which must be newest first."""
    rows = await connection.fetch(_PAST, customer_id, order_ids, lines)
    return [(row["email"], row["name"]) for row in rows]


async def export_contacts(connection: Connection, email: str, customer_id: int | None) -> list[Row]:
    """Returns the contacts with that address, of one customer or of all. Reads all contacts."""
    return await connection.fetch(_EXPORT, email_key(email), customer_id)


async def count_contacts_with(connection: Connection, email: str, customer_id: int | None) -> int:
    """Returns how many contacts, of one customer or of all, have that address, or name it in a field. Reads all contacts."""
    key = email_key(email)
    own: int = await connection.fetchval(_COUNT_WITH_ADDRESS, key, customer_id)
    return own + len(await connection.fetch(_MENTIONING, key, customer_id))


async def drop_contacts_with(connection: Connection, email: str, customer_id: int | None) -> int:
    """Deletes the contacts with that address, of one customer or of all, and fields of others that name it. Returns how many it changed.

    Waits for other changes of these contacts. Otherwise they could write old values back.
    """
    key = email_key(email)
    for row in await connection.fetch(_PLACES, key, customer_id):
        await lock_contacts(connection, (row["customer_id"], row["environment"]))
    dropped = await count_changed(connection, _DELETE_WITH_ADDRESS, key, customer_id)
    mentioning = await connection.fetch(_MENTIONING, key, customer_id)
    found = address_pattern(email)
    for row in mentioning:
        kept = {name: value for name, value in _FIELDS.decode(row["own_fields"]).items() if not found.search(value)}
        await connection.execute(_REWRITE, row["customer_id"], row["id"], _encode(kept).decode())
    return dropped + len(mentioning)


def _contact(row: Row) -> Contact:
    own_fields, groups = _FIELDS.decode(row["own_fields"]), tuple(row["groups"])
    return Contact(**{**row, "own_fields": own_fields, "groups": groups})


def _columns(contact: Contact) -> dict[str, Any]:
    """Returns the columns that `_NEW` reads, and others that it ignores."""
    keys = {"email_key": email_key(contact.email), "sought": sought(contact.name, contact.email)}
    return {**msgspec.to_builtins(contact), **keys}


def read_fields(text: str) -> dict[str, str]:
    """Returns the own fields of a contact from the text of the database."""
    return _FIELDS.decode(text)
