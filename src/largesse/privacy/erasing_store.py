"""The SQL of erasures under way. Each is a job: what was found when it began, and what was removed so far."""

from collections.abc import Sequence
from typing import Any

import msgspec

from largesse.audit.service import Who
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row

_COLUMNS = Fragment("""
    id, customer_id, request_id, sealed_email, who, done, orders IS NOT NULL AS is_searched, coalesce(orders, 0) AS orders, texts,
    lines, messages, cancelled, captured, parcels, ended_at IS NOT NULL AS has_ended, erasure_id
""")
# A request has one job that has not ended.
_ADD = """
    INSERT INTO erasure_jobs (id, customer_id, request_id, sealed_email, who, began_at, due_at)
    VALUES ($1, $2, $3, $4, $5, clock_now(), clock_now())
    ON CONFLICT (request_id) WHERE ended_at IS NULL DO NOTHING RETURNING id
"""
_NEXT_ID = "SELECT nextval('erasure_jobs_id_seq')::int"
_RUNNING = compose(
    "SELECT {columns} FROM erasure_jobs WHERE ended_at IS NULL AND request_id IS NOT DISTINCT FROM $1 ORDER BY id",
    columns=_COLUMNS,
)
_ONE = compose("SELECT {columns} FROM erasure_jobs WHERE id = $1", columns=_COLUMNS)
_LAST_OF_REQUEST = compose(
    "SELECT {columns} FROM erasure_jobs WHERE request_id = $1 ORDER BY id DESC LIMIT 1", columns=_COLUMNS
)
_LOCK = compose("{one} FOR UPDATE", one=_ONE)
_OF_REQUESTS = compose(
    "SELECT {columns} FROM erasure_jobs WHERE ended_at IS NULL AND request_id IS NOT NULL", columns=_COLUMNS
)
_DUE = """
    SELECT id FROM erasure_jobs WHERE ended_at IS NULL AND due_at <= clock_now() ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
"""
_NOTE_FOUND = "UPDATE erasure_jobs SET orders = $2, texts = $3, captured = $4 WHERE id = $1"
_ADD_FOUND = """
    INSERT INTO erasure_orders (job_id, number, found)
    SELECT $1, number - 1, found FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS one (found, number)
"""
_FOUND = "SELECT found FROM erasure_orders WHERE job_id = $1 AND number = $2"
_ADVANCE = """
    UPDATE erasure_jobs SET done = done + 1, lines = lines + $2, messages = messages + $3, cancelled = cancelled + $4,
        captured = captured + $5, parcels = parcels + $6
    WHERE id = $1
"""
_END = "UPDATE erasure_jobs SET ended_at = clock_now(), sealed_email = NULL, erasure_id = $2 WHERE id = $1"
_POSTPONE = "UPDATE erasure_jobs SET due_at = clock_now() + $2 * interval '1 second' WHERE id = $1"


class FoundOrder(msgspec.Struct, frozen=True, array_like=True):
    """An order in which an address was found."""

    customer_id: int
    order_id: int
    numbers: list[int]  # its lines
    addressed: list[int]  # those of them that are sent to the address
    is_mention: bool  # whether its texts contain the address


class ErasureJob(msgspec.Struct, frozen=True):
    """An erasure that runs or has ended."""

    id: int
    customer_id: int | None
    request_id: int | None
    sealed_email: bytes | None  # None once it has ended
    who: Who
    done: int  # orders that are erased
    is_searched: bool  # whether the search for the address is over
    orders: int  # orders in which it was found
    texts: int  # those of them whose texts contain it
    lines: int
    messages: int
    cancelled: int
    captured: int
    parcels: int
    has_ended: bool
    erasure_id: int | None  # the receipt; None while it runs, and if nothing was found


async def next_job_id(connection: Connection) -> int:
    """Returns the id of a new job, which is the encryption context of its address."""
    job_id: int = await connection.fetchval(_NEXT_ID)
    return job_id


async def add_job(
    connection: Connection, job_id: int, customer_id: int | None, request_id: int | None, sealed: bytes, who: Who
) -> bool:
    """Adds a job. Returns False if its request already has a running one."""
    who_json = msgspec.json.encode(who).decode()
    return await connection.fetchval(_ADD, job_id, customer_id, request_id, sealed, who_json) is not None


async def list_running(connection: Connection, request_id: int | None) -> list[ErasureJob]:
    """Returns the running jobs of a request, or of the command line for None."""
    return [_job(row) for row in await connection.fetch(_RUNNING, request_id)]


async def find_job_of_request(connection: Connection, request_id: int) -> ErasureJob | None:
    """Returns the last job of a request."""
    row = await connection.fetchrow(_LAST_OF_REQUEST, request_id)
    return None if row is None else _job(row)


async def list_running_of_requests(connection: Connection) -> dict[int, ErasureJob]:
    """Returns the running jobs of all requests, by the ids of the requests."""
    jobs = [_job(row) for row in await connection.fetch(_OF_REQUESTS)]
    return {job.request_id: job for job in jobs if job.request_id is not None}


async def find_due_job(connection: Connection) -> int | None:
    """Returns the first due job that nobody works on right now."""
    job_id: int | None = await connection.fetchval(_DUE)
    return job_id


async def read_job(connection: Connection, job_id: int, *, lock: bool = False) -> ErasureJob:
    """Returns a job, and locks it if asked to."""
    row = await connection.fetchrow(_LOCK if lock else _ONE, job_id)
    assert row is not None, "jobs are deleted long after their end"
    return _job(row)


async def note_found(connection: Connection, job_id: int, found: Sequence[FoundOrder], captured: int) -> None:
    """Stores where the address of a job was found, and how many captured copies are gone already."""
    await connection.execute(_ADD_FOUND, job_id, msgspec.json.encode(found).decode())
    await connection.execute(_NOTE_FOUND, job_id, len(found), sum(one.is_mention for one in found), captured)


async def read_next(connection: Connection, job: ErasureJob) -> FoundOrder:
    """Returns the next order to erase. Lock the job before: another process may have just searched."""
    return msgspec.json.decode(await connection.fetchval(_FOUND, job.id, job.done), type=FoundOrder)


async def advance(connection: Connection, job_id: int, counts: Sequence[int]) -> None:
    """Marks the next order as erased. `counts` are the lines, messages, cancelled messages, captured copies and parcels that it removed."""
    await connection.execute(_ADVANCE, job_id, *counts)


async def end_job(connection: Connection, job_id: int, erasure_id: int | None) -> None:
    """Ends a job with its receipt, or without one if nothing was found, and erases its address."""
    await connection.execute(_END, job_id, erasure_id)


async def postpone(connection: Connection, job_id: int, delay_s: float) -> None:
    """Lets workers go on with a job only after a while."""
    await connection.execute(_POSTPONE, job_id, delay_s)


def _job(row: Row) -> ErasureJob:
    columns: dict[str, Any] = dict(row)
    who = columns.pop("who")
    return ErasureJob(**columns, who=msgspec.json.decode(who, type=Who))
