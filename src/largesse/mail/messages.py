"""Makes messages, one for each recipient of an order whose mail is due; leases them in the database, and reads them with their codes."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import structlog

from largesse.base.confidential import Confidential
from largesse.base.email import email_key, is_erased
from largesse.base.i18n.languages import language_of
from largesse.base.zones import last_whole_day
from largesse.branding.model import NO_BRAND, Brand
from largesse.branding.store import read_brands
from largesse.catalogue.model import Details
from largesse.catalogue.pictures import picture_path
from largesse.db.pool import Connection, Row, commit_as_one, is_distributed
from largesse.db.shard_groups import Customers, list_shard_groups, read_by_shard_group
from largesse.db.sharding import arguments
from largesse.db.statements import plan_by_index
from largesse.encryption.vault import Vault
from largesse.events.store import record_changes
from largesse.jobs import metrics
from largesse.jobs.leases import Lease, Queue, Terms, held_columns
from largesse.lines.codes import asked_code, claim_link, open_code
from largesse.mail import store
from largesse.mail.letter import CAMPAIGN_CODE, CHOICE, PARCEL, SHIPPED, VOUCHER, Letter, LetterCode
from largesse.orders.recipients import MAX_CODES

_MAX_CODES = 10_000  # codes of all orders of one transaction, unless a single order has more


async def fan_out(connection: Connection, limit: int, customers: Customers = None) -> tuple[int, int]:
    """Makes the messages of up to `limit` due mail jobs, of some customers or of all. Returns the number of jobs and of messages.

    Call it inside a transaction. Several workers may run it at once: each takes other jobs.
    """
    jobs = messages = 0
    await commit_as_one(connection)
    await plan_by_index(connection)
    for shard_group in await list_shard_groups(connection, customers):
        taken, made = await _fan_out(connection, limit - jobs, shard_group)
        jobs, messages = jobs + taken, messages + made
    return jobs, messages


async def _fan_out(connection: Connection, limit: int, shard_group: Customers) -> tuple[int, int]:
    jobs = await connection.fetch(store.TAKE_JOBS.of(shard_group), limit, *arguments(shard_group))
    taken = _within([job for job in jobs if job["codes_and_scheduled"] is not None], _MAX_CODES)
    if not taken:
        return 0, 0
    made = await _make_messages(connection, taken, shard_group)
    await connection.execute(store.MARK_FANNED_OUT.of(shard_group), *_columns(taken), *arguments(shard_group))
    await record_changes(
        connection, [(job["customer_id"], job["order_id"]) for job in taken if job["codes_and_scheduled"][1]]
    )
    return len(taken), made


def _columns(jobs: Sequence[Row]) -> tuple[list[int], list[int]]:
    """Returns the customers and the orders of jobs."""
    return [job["customer_id"] for job in jobs], [job["order_id"] for job in jobs]


def _within(jobs: Sequence[Row], codes: int) -> list[Row]:
    """Returns the first of `jobs` that together have at most `codes` codes, but at least one job."""
    taken: list[Row] = []
    for job in jobs:
        codes -= job["codes_and_scheduled"][0]
        if taken and codes < 0:
            break
        taken.append(job)
    return taken


async def _make_messages(connection: Connection, jobs: Sequence[Row], shard_group: Customers) -> int:
    # A cancellation locks the mail job too, so either this sees the cancellation, or the cancellation sees the messages.
    lines = await connection.fetch(store.LINES_TO_MAIL.of(shard_group), *_columns(jobs), *arguments(shard_group))
    # One message for each distinct address, in any letter case, as in the order's recipientCount.
    numbers: dict[tuple[int, str], list[int]] = defaultdict(list)
    first: dict[tuple[int, str], Row] = {}
    for line in lines:
        if is_erased(line["recipient_email"]):
            continue
        key = (line["order_id"], email_key(line["recipient_email"]))
        numbers[key].append(line["number"])
        first.setdefault(key, line)
    job_of = {job["order_id"]: job for job in jobs}
    await connection.execute(
        store.INSERT_MESSAGES,
        [line["customer_id"] for line in first.values()],
        [line["order_id"] for line in first.values()],
        [job_of[line["order_id"]]["environment"] for line in first.values()],
        [job_of[line["order_id"]]["due_at"] for line in first.values()],
        [line["recipient_email"] for line in first.values()],
        [line["recipient_name"] for line in first.values()],
        [f"{{{','.join(map(str, numbers[key]))}}}" for key in first],
        store.RANKED_TOGETHER,
        store.RANK_GAP_S,
    )
    return len(first)


_TERMS = Terms()
UNREADABLE = "The mail could not be written."
_UNREADABLE_AGAIN_S = 3600.0

# A message's rank is at most this much later than its due time; for a retry, exactly this much.
# So a message whose rank is more than this in the future is not due, and the scan of the index ends there.
SPREAD_S = MAX_CODES / store.RANKED_TOGETHER * store.RANK_GAP_S

# While the next release is rolled out, it makes messages of kinds that only its own workers can write: they are left to them.
MESSAGES = Queue(
    "messages",
    "id",
    "bigint",
    ready="state = 'pending' AND kind ~ '^(gift|voucher_ready|(shipped|returned)(_[0-9]+)?|reminder_([123]|last)|campaign_code)$'",
    order="rank_at",
    order_ahead_s=SPREAD_S,
)

log = structlog.get_logger(__name__)


class Message(Confidential, frozen=True):
    """A leased message with all that is needed to send it."""

    lease: Lease
    order_id: int
    due_at: datetime
    age_s: float  # the seconds since it was made, or made due again
    attempts: int
    line_numbers: list[int]  # the lines whose codes are in the letter
    letter: Letter


async def take(
    connection: Connection, limit: int, vault: Vault, public_url_of: Callable[[str], str], terms: Terms = _TERMS
) -> list[Message]:
    """Leases up to `limit` due messages, with their letters. Call it inside a transaction.

    If a message's order is on a node that is down, it is taken again when its lease has expired. If its codes cannot be decrypted, it is
    taken again after an hour.
    """
    taken = await MESSAGES.take(connection, limit, terms=terms)
    orders, away = await _read_orders(connection, taken)
    there = [row for row in taken if row["customer_id"] not in away]
    named = await _read_names(connection, there, orders)
    brands = await read_brands(connection, [row["customer_id"] for row in there])
    distributed = is_distributed(connection)
    messages, unreadable = [], []
    for row in sorted(there, key=lambda row: (row["rank_at"], row["id"])):
        try:
            message = _message(
                row,
                orders[row["id"]],
                named[row["id"]],
                brands.get(row["customer_id"], NO_BRAND),
                vault,
                public_url_of(row["environment"]),
                row["customer_id"] if distributed else None,
            )
        except Exception:  # one message must not stop the ones after it
            log.exception("mail.unreadable", message_id=row["id"], order_id=row["order_id"])
            unreadable.append(Lease(row["customer_id"], row["id"], row["fence"]))
        else:
            messages.append(message)
    if unreadable:
        metrics.MAILS.labels("unreadable").inc(len(unreadable))
        await connection.execute(store.POSTPONE, *held_columns(unreadable), UNREADABLE, _UNREADABLE_AGAIN_S, SPREAD_S)
    return messages


async def _read_orders(connection: Connection, taken: Sequence[Row]) -> tuple[dict[int, Row], set[int]]:
    """Returns the order's texts and the codes for each message, by its id, and the customers whose node is down."""

    async def read(shard_group: Customers) -> list[Row]:
        return await connection.fetch(
            store.ORDERS_OF_MESSAGES.of(shard_group),
            [row["customer_id"] for row in taken],
            [row["id"] for row in taken],
            [row["order_id"] for row in taken],
            [f"{{{','.join(map(str, row['line_numbers']))}}}" for row in taken],
            [None if row["kind"] == "gift" else row["edition"] for row in taken],
            *arguments(shard_group),
        )

    rows, away = await read_by_shard_group(connection, [row["customer_id"] for row in taken], read)
    return {row["id"]: row for row in rows}, away


async def _read_names(connection: Connection, taken: Sequence[Row], orders: Mapping[int, Row]) -> dict[int, Row]:
    """Returns the names and kinds of the gifts of messages, by the message's id."""
    rows = await connection.fetch(
        store.NAMES_OF_MESSAGES,
        [row["id"] for row in taken],
        [row["trying_since"] or row["created_at"] for row in taken],
        *([orders[row["id"]][name] for row in taken] for name in ("product_id", "collection_id", "settled_id")),
        [row["customer_id"] for row in taken],
        [row["order_id"] for row in taken],
        [row["edition"] if row["kind"].startswith(SHIPPED) else None for row in taken],
        [_ask_of(row) for row in taken],
        [row["environment"] for row in taken],
        [email_key(row["email"]) for row in taken],
        [orders[row["id"]]["campaign_order"] for row in taken],
        [next(iter(row["line_numbers"]), None) for row in taken],
    )
    return {row["id"]: row for row in rows}


def _ask_of(row: Row) -> int | None:
    """Returns the number of the code request, for a mail with a visitor's code."""
    return -row["line_numbers"][0] if row["kind"] == CAMPAIGN_CODE else None


async def still_stands(connection: Connection, message: Message) -> bool:
    """Returns whether a message may still be sent as it was read: no worker has leased it since, and none of its codes was voided."""
    stands: bool | None = await connection.fetchval(
        store.STILL_STANDS, message.lease.customer_id, message.lease.key, message.lease.fence, message.line_numbers
    )
    return bool(stands)


async def put_back(connection: Connection, leases: Sequence[Lease], reason: str) -> None:
    """Frees messages that could not be offered to the mail server, with the reason. This does not count as an attempt."""
    await connection.execute(store.PUT_BACK, *held_columns(leases), reason)


def _message(
    row: Row, order: Row, named: Row, brand: Brand, vault: Vault, public_url: str, whose: int | None
) -> Message:
    reference = order["reference"]
    codes = []
    for number, sealed in zip(order["numbers"], order["sealed"], strict=True):
        code = open_code(vault, sealed, reference, number)
        codes.append(LetterCode(code.code_text, code.pin_text, claim_link(code, vault, public_url, whose)))
    asked = _ask_of(row)
    comes_as = CHOICE if named["collection"] else VOUCHER if named["is_digital"] else PARCEL
    letter = Letter(
        kind=row["kind"],
        reference=reference,
        edition=row["edition"],
        environment=row["environment"],
        language=language_of(named["language"] or order["language"] or named["known_language"], order["country"]),
        email=row["email"],
        name=row["name"],
        sender=order["from_name"],
        message=order["message"],
        wrapping_key=order["wrapping_key"],
        gift=named["settled"] or named["product"] or named["collection"] or "",
        comes_as=comes_as,
        # The recipient of a physical gift does not see its price.
        value_minor=None if comes_as == PARCEL else order["value_minor"],
        currency=order["currency"],
        expiry_days=order["expiry_after_days"],
        claim_by=order["claim_by"] and last_whole_day(order["claim_by"], order["country"]),
        recipients=order["recipient_count"],
        codes=codes,
        asked_code=None if asked is None else asked_code(vault, row["customer_id"], asked),
        carrier=named["carrier"],
        tracking_number=named["tracking_number"],
        picture=public_url + picture_path(named["picture"]) if named["picture"] else None,
        details=Details(named["description"], named["how_to_redeem"], named["terms"]),
        brand=brand,
        pictures=public_url,
    )
    lease = Lease(row["customer_id"], row["id"], row["fence"])
    return Message(lease, row["order_id"], row["due_at"], named["age_s"], row["attempts"], row["line_numbers"], letter)
