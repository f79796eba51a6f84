"""Leases messages in the database, and reads them with their codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from largesse.base.i18n.languages import language_of
from largesse.base.zones import last_whole_day
from largesse.branding.model import NO_BRAND, Brand
from largesse.branding.store import read_brands
from largesse.catalogue.model import Details
from largesse.catalogue.pictures import picture_path
from largesse.db.pool import Connection, Row, is_distributed
from largesse.db.shard_groups import Customers, read_by_shard_group
from largesse.db.sharding import arguments
from largesse.encryption.vault import Vault
from largesse.jobs.leases import Lease, Queue, Terms, held_columns
from largesse.lines.codes import asked_code, claim_link, open_code
from largesse.mail import store
from largesse.mail.letter import CAMPAIGN_CODE, CHOICE, PARCEL, SHIPPED, VOUCHER, Letter, LetterCode
from largesse.orders.recipients import MAX_CODES

_TERMS = Terms()
UNREADABLE = "The mail could not be written."
_UNREADABLE_AGAIN_S = 3600.0

# The messages of a large order get ranks with gaps: this many messages, then a gap, in which other orders fit.
RANKED_TOGETHER = 50
RANK_GAP_S = 0.25
# A message's rank is at most this much later than its due time, and exactly this much for a retry. So messages with a rank
# later than this from now are not due, and the scan of the index ends there.
SPREAD_S = MAX_CODES / RANKED_TOGETHER * RANK_GAP_S

MESSAGES = Queue("messages", "id", "bigint", ready="state = 'pending'", order="rank_at", order_ahead_s=SPREAD_S)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class Message:
    """A leased message with all that is needed to send it."""

    lease: Lease
    order_id: int
    due_at: datetime
    age_s: float  # since it was made, or made due again
    attempts: int
    line_numbers: list[int]  # whose codes are in the letter
    letter: Letter


async def take(
    connection: Connection, limit: int, vault: Vault, public_url_of: Callable[[str], str], terms: Terms = _TERMS
) -> list[Message]:
    """Leases up to `limit` due messages, with their letters. Call it inside a transaction.

    A message whose order is on a node that is down is tried again when its lease has expired, and one whose codes cannot be decrypted after
    an hour.
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
        except Exception:  # it must not stop the others, which come after it each time
            log.exception("mail.unreadable", message_id=row["id"], order_id=row["order_id"])
            unreadable.append(Lease(row["customer_id"], row["id"], row["fence"]))
        else:
            messages.append(message)
    if unreadable:
        await connection.execute(store.POSTPONE, *held_columns(unreadable), UNREADABLE, _UNREADABLE_AGAIN_S)
    return messages


async def _read_orders(connection: Connection, taken: Sequence[Row]) -> tuple[dict[int, Row], set[int]]:
    """Returns the texts of orders and the codes of lines by the message's id, and the customers whose node is down."""

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
    )
    return {row["id"]: row for row in rows}


def _ask_of(row: Row) -> int | None:
    """Returns the number of the code request, for a mail with a visitor's code."""
    return -row["line_numbers"][0] if row["kind"] == CAMPAIGN_CODE else None


async def still_stands(connection: Connection, message: Message) -> bool:
    """Returns whether a message may be sent as it was read: no worker has leased it since, and none of its codes was voided."""
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
        language=language_of(named["language"] or order["language"], order["country"]),
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
