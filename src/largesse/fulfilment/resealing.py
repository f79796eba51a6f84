"""Bringing what fulfilment seals under the newest master key: vouchers, with the numbers they are found by, and addresses."""

from __future__ import annotations

from largesse.base.vault import Vault
from largesse.database.pool import Row
from largesse.fulfilment.notifications import open_email, seal_email
from largesse.fulfilment.shipments import reseal_address
from largesse.fulfilment.vouchers import open_voucher, seal_voucher
from largesse.lines.resealing import left_emails
from largesse.lines.states import LineKey
from largesse.sealing.tables import SealedTable


def _renew_email(vault: Vault, row: Row) -> tuple[bytes]:
    line = LineKey(row["customer_id"], row["order_id"], row["number"])
    return (seal_email(vault, open_email(vault, row["sealed_email"], line), line),)


def _renew_voucher(vault: Vault, row: Row) -> tuple[bytes, int]:
    voucher = open_voucher(vault, row["sealed"], row["product_id"])
    renewed = seal_voucher(vault, voucher, row["product_id"])
    return renewed.sealed, renewed.lookups[0]


def _renew_address(vault: Vault, row: Row) -> tuple[bytes]:
    line = LineKey(row["customer_id"], row["order_id"], row["number"])
    return (reseal_address(vault, row["sealed_address"], line),)


EMAILS = left_emails(lambda vault: vault.emails, _renew_email)

# An import asks for a number's look-ups under all keys, so that it finds the copy before and after. A free voucher that is locked
# here may be passed over by whoever claims a gift just then: what waits for stock looks again after its commit.
VOUCHERS = SealedTable(
    table="vouchers",
    column="sealed",
    before_all=(0,),
    part=lambda vault: vault.vouchers,
    window="""
        SELECT id, substring(sealed FROM 1 FOR 4) <> $1 AS is_old FROM vouchers WHERE id > $3 ORDER BY id LIMIT $2
    """,
    take="""
        SELECT id, product_id, sealed FROM vouchers
        WHERE id = ANY($2::bigint[]) AND substring(sealed FROM 1 FOR 4) <> $1 FOR UPDATE SKIP LOCKED
    """,
    renew=_renew_voucher,
    put="""
        UPDATE vouchers SET sealed = new.sealed, lookup = new.lookup
        FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) AS new (id, sealed, lookup) WHERE vouchers.id = new.id
    """,
)

ADDRESSES = SealedTable(
    table="shipments",
    column="sealed_address",
    before_all=(-1, 0),
    part=lambda vault: vault.addresses,
    window="""
        SELECT customer_id, id, substring(sealed_address FROM 1 FOR 4) <> $1 AS is_old FROM shipments
        WHERE (customer_id, id) > ($3, $4) AND sealed_address IS NOT NULL ORDER BY customer_id, id LIMIT $2
    """,
    take="""
        SELECT customer_id, id, order_id, number, sealed_address
        FROM unnest($2::int[], $3::bigint[]) AS wanted (customer_id, id) JOIN shipments USING (customer_id, id)
        WHERE substring(sealed_address FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE OF shipments SKIP LOCKED
    """,
    renew=_renew_address,
    put="""
        UPDATE shipments SET sealed_address = new.sealed
        FROM unnest($1::int[], $2::bigint[], $3::bytea[]) AS new (customer_id, id, sealed)
        WHERE shipments.customer_id = new.customer_id AND shipments.id = new.id
    """,
)
