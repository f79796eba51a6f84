"""The SQL of parcels for the people who pack them. Addresses are in `store`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from largesse.db.fragments import Fragment, compose

_SELECT = Fragment("""
    SELECT s.id, s.customer_id, s.order_id, s.number AS line, p.key AS product, p.name AS product_name, s.country, s.requested_at,
           s.exported_at, s.shipped_at, s.carrier, s.tracking_number, s.returned_at, s.return_reason, s.again_at,
           s.sealed_address IS NULL AS is_erased
    FROM shipments s JOIN products p ON p.id = s.product_id
""")
# After the parcel $2, if given.
LISTED: Mapping[str, str] = MappingProxyType(
    {
        "waiting": compose(
            """
            {select} WHERE s.environment = $1 AND (s.shipped_at IS NULL OR s.again_at IS NOT NULL) AND s.sealed_address IS NOT NULL
                AND s.id > coalesce($2, 0) ORDER BY s.id LIMIT $3
            """,
            select=_SELECT,
        ),
        "sent": compose(
            """
            {select} WHERE s.environment = $1 AND s.shipped_at IS NOT NULL AND s.again_at IS NULL
                AND (s.returned_at IS NULL OR s.returned_at < s.shipped_at)
                AND ($2::bigint IS NULL OR (s.shipped_at, s.id) < (SELECT shipped_at, id FROM shipments WHERE id = $2))
            ORDER BY s.shipped_at DESC, s.id DESC LIMIT $3
            """,
            select=_SELECT,
        ),
        "back": compose(
            """
            {select} WHERE s.environment = $1 AND s.returned_at >= s.shipped_at AND s.again_at IS NULL
                AND ($2::bigint IS NULL OR (s.returned_at, s.id) < (SELECT returned_at, id FROM shipments WHERE id = $2))
            ORDER BY s.returned_at DESC, s.id DESC LIMIT $3
            """,
            select=_SELECT,
        ),
    }
)
PARCEL = compose("{select} WHERE s.id = $1 AND s.environment = $2", select=_SELECT)
TRACKED = compose(
    "{select} WHERE s.tracking_number = $1 AND s.environment = $2 ORDER BY s.id DESC LIMIT 50", select=_SELECT
)
TO_PICK = """
    SELECT p.key, p.name, count(*)::int FROM shipments s JOIN products p ON p.id = s.product_id
    WHERE s.environment = $1 AND (s.shipped_at IS NULL OR s.again_at IS NOT NULL) AND s.sealed_address IS NOT NULL
    GROUP BY 1, 2 ORDER BY 3 DESC, 1 LIMIT 200
"""
COUNTS = """
    SELECT (SELECT count(*) FROM (
                SELECT FROM shipments WHERE environment = $1 AND (shipped_at IS NULL OR again_at IS NOT NULL) AND sealed_address IS NOT NULL
                LIMIT 1000) AS counted)::int AS waiting,
           (SELECT count(*) FROM (
                SELECT FROM shipments WHERE environment = $1 AND returned_at >= shipped_at AND again_at IS NULL LIMIT 1000) AS counted)::int AS back
"""
LOCK = "SELECT FROM shipments WHERE id = $1 AND environment = $2 FOR UPDATE"
NOTE_RETURN = """
    UPDATE shipments SET returned_at = clock_now(), return_reason = $3 WHERE customer_id = $1 AND id = $2
"""
CORRECT_NUMBER = "UPDATE shipments SET carrier = $3, tracking_number = $4 WHERE customer_id = $1 AND id = $2"
SEND_AGAIN = "UPDATE shipments SET again_at = clock_now(), exported_at = NULL WHERE customer_id = $1 AND id = $2"
