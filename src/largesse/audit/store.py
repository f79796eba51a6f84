"""The SQL of the audit log."""

from largesse.db.fragments import Fragment, compose
from largesse.encryption.chain import micros

# The end of a customer's log, locked until the transaction ends, and the transaction's time.
LOCK_HEAD = compose(
    """
    SELECT head, at, {micros} AS at_us FROM audit_heads, LATERAL (SELECT clock_now() AS at) AS clock
    WHERE customer_id = $1 FOR NO KEY UPDATE OF audit_heads
""",
    micros=micros("at"),
)
ADD = """
    WITH added AS (
        INSERT INTO audit_events (customer_id, at, environment, actor, actor_id, actor_name, address, request_id,
            act, subject, before, after, mac)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13))
    UPDATE audit_heads SET head = $14 WHERE customer_id = $1
"""
# The first act of a customer.
NEW_HEAD = "INSERT INTO audit_heads (customer_id, head) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_COLUMNS = Fragment("""
    e.id, e.at, c.key AS customer, e.environment, e.actor, e.actor_id, e.actor_name, e.address, e.request_id, e.act, e.subject,
    e.before::text, e.after::text
""")
# Looks at the newest $3 events of customer $1 before the event $2.
# Returns those with one of the acts $4, by an actor whose name contains $5 or is one of $6, and with $7 in the subject or in a changed value, or one of
# the subjects $8. Reads them by the index of the primary key, in its order: the planner expects few events of a customer, and would sort them all.
_LOOKED_AT = Fragment("""
    audit_events WHERE customer_id >= $1 AND (customer_id, id) < ($1, $2) ORDER BY customer_id DESC, id DESC
""")
NEWEST = compose(
    """
    WITH looked_at AS (SELECT * FROM {looked_at} LIMIT $3)
    SELECT {columns}
    FROM looked_at e LEFT JOIN customers c ON c.id = e.customer_id
    WHERE (cardinality($4::text[]) = 0 OR e.act = ANY($4))
      AND ($5 = '' OR strpos(lower(e.actor_name), lower($5)) > 0 OR e.actor_name = ANY($6::text[]))
      AND ($7 = '' OR e.subject = ANY($8::text[])
           OR strpos(lower(concat(e.subject, e.before::text, e.after::text)), lower($7)) > 0)
    ORDER BY e.customer_id DESC, e.id DESC LIMIT $9
    """,
    looked_at=_LOOKED_AT,
    columns=_COLUMNS,
)
# The oldest event that the page looks at; null if there are no more.
LAST = compose("SELECT id FROM {looked_at} OFFSET $3 - 1 LIMIT 1", looked_at=_LOOKED_AT)

_LOOKED_AT_OF_ALL = Fragment("""
    audit_events WHERE (at, id) < (coalesce($1::timestamptz, 'infinity'), $2::bigint) ORDER BY at DESC, id DESC
""")
# Looks at the newest $3 events of all before the instant $1 and the event $2.
# Returns those with one of the acts $4, by an actor whose name contains $5, and with $6 in the subject or in a changed value.
NEWEST_OF_ALL = compose(
    """
    WITH looked_at AS (SELECT * FROM {looked_at} LIMIT $3)
    SELECT {columns} FROM looked_at e LEFT JOIN customers c ON c.id = e.customer_id
    WHERE (cardinality($4::text[]) = 0 OR e.act = ANY($4)) AND ($5 = '' OR strpos(lower(e.actor_name), lower($5)) > 0)
      AND ($6 = '' OR strpos(lower(concat(e.subject, e.before::text, e.after::text)), lower($6)) > 0)
    ORDER BY e.at DESC, e.id DESC LIMIT $7
    """,
    looked_at=_LOOKED_AT_OF_ALL,
    columns=_COLUMNS,
)
# The oldest event that the page looks at; null if there are no more.
LAST_OF_ALL = compose("SELECT at, id FROM {looked_at} OFFSET $3 - 1 LIMIT 1", looked_at=_LOOKED_AT_OF_ALL)


def _since(condition: Fragment) -> Fragment:
    return compose(
        """
        SELECT {columns}
        FROM audit_events e LEFT JOIN customers c ON c.id = e.customer_id
        WHERE (e.at, e.id) > ($1, $2) AND {condition}
        ORDER BY e.at, e.id LIMIT $3
        """,
        columns=_COLUMNS,
        condition=condition,
    )


# The events after the instant $1 and the id $2, of all or of customer $4.
SINCE = _since(Fragment("true"))
SINCE_OF_CUSTOMER = _since(Fragment("e.customer_id = $4"))
