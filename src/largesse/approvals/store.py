"""The SQL of approvals: rules, requests and decisions."""

from collections.abc import Collection, Sequence
from datetime import datetime

from largesse.approvals.model import ApprovalRequest, ApprovalRule, Decision, Excess, Grant
from largesse.base.email import email_key
from largesse.db.fragments import Fragment, compose, holds_address
from largesse.db.pool import Connection, Row, coordinator_of
from largesse.db.scope import Place

_RULE_COLUMNS = Fragment("""
    customer_id, id, environment, name, role, currency, above_minor, beyond_budget, account_ids, product_ids, collection_ids,
    approver_ids, needed, expires_days
""")
_RULES_OF_CUSTOMERS = compose(
    "SELECT {rule_columns} FROM approval_rules WHERE customer_id = ANY($1::int[]) AND ended_at IS NULL",
    rule_columns=_RULE_COLUMNS,
)
_LIST_RULES = compose(
    """
    SELECT {rule_columns} FROM approval_rules WHERE customer_id = $1 AND environment = $2 AND ended_at IS NULL ORDER BY lower(name), id
""",
    rule_columns=_RULE_COLUMNS,
)
_RULES_BY_ID = compose(
    "SELECT {rule_columns} FROM approval_rules WHERE customer_id = $1 AND id = ANY($2::int[])",
    rule_columns=_RULE_COLUMNS,
)
_ADD_RULE = """
    INSERT INTO approval_rules
        (customer_id, environment, name, role, currency, above_minor, beyond_budget, account_ids, product_ids, collection_ids,
         approver_ids, needed, expires_days)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING id
"""
_END_RULE = """
    UPDATE approval_rules SET ended_at = clock_now() WHERE customer_id = $1 AND environment = $2 AND id = $3 AND ended_at IS NULL
    RETURNING name
"""
# Locks a request, so that nobody withdraws it before its order is placed or refused.
_GRANTS = """
    SELECT r.id, r.digest, r.total_minor, r.rule_ids FROM unnest($1::int[], $2::text[], $3::text[]) AS one (customer_id, environment, id)
    JOIN approval_requests r USING (customer_id, environment, id) WHERE r.state = 'approved' FOR SHARE OF r
"""
_REQUEST_COLUMNS = Fragment("""
    r.customer_id, r.environment, r.id, r.round, r.user_id, r.state, r.rule_ids, r.quote, r.digest, r.total_minor, r.currency,
    r.gift_name, r.code_count, r.draft_changed_at, r.asked_at, r.expires_at, r.ended_at, r.excesses,
    EXISTS (SELECT FROM sent WHERE sent.reference = r.id) AS is_sent,
    EXISTS (SELECT FROM drafts d WHERE d.customer_id = r.customer_id AND d.environment = r.environment AND d.id = r.id) AS has_draft
""")
# On a cluster, orders may be on a node, so each statement reads them in its own part.
_FIND = compose(
    """
    WITH sent AS MATERIALIZED (SELECT reference FROM orders WHERE customer_id = $1 AND reference = $3)
    SELECT {request_columns} FROM approval_requests r WHERE r.customer_id = $1 AND r.environment = $2 AND r.id = $3
""",
    request_columns=_REQUEST_COLUMNS,
)
_LOCK = "SELECT FROM approval_requests WHERE customer_id = $1 AND environment = $2 AND id = $3 FOR UPDATE"
_LIST = compose(
    """
    WITH r AS MATERIALIZED (
        (SELECT * FROM approval_requests WHERE customer_id = $1 AND environment = $2 AND state = 'waiting'
         ORDER BY asked_at DESC, id LIMIT $3)
        UNION ALL (SELECT * FROM approval_requests WHERE customer_id = $1 AND environment = $2 AND state <> 'waiting'
                   ORDER BY asked_at DESC, id LIMIT $3)
        UNION (SELECT * FROM approval_requests WHERE customer_id = $1 AND environment = $2 AND user_id = $4
               AND asked_at > (SELECT clock_now()) - interval '30 days' ORDER BY asked_at DESC, id LIMIT $3)),
    sent AS MATERIALIZED (SELECT reference FROM orders WHERE customer_id = $1 AND reference = ANY(ARRAY(SELECT id FROM r)))
    SELECT {request_columns} FROM r ORDER BY r.asked_at DESC, r.id
""",
    request_columns=_REQUEST_COLUMNS,
)
_ASK = """
    INSERT INTO approval_requests AS known
        (customer_id, environment, id, user_id, state, rule_ids, quote, digest, total_minor, currency, gift_name, code_count,
         draft_changed_at, asked_at, expires_at, excesses)
    VALUES ($1, $2, $3, $4, 'waiting', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    ON CONFLICT (customer_id, environment, id) DO UPDATE SET
        round = known.round + 1, state = 'waiting', rule_ids = excluded.rule_ids, quote = excluded.quote, digest = excluded.digest,
        total_minor = excluded.total_minor, currency = excluded.currency, gift_name = excluded.gift_name, code_count = excluded.code_count,
        draft_changed_at = excluded.draft_changed_at, asked_at = excluded.asked_at, expires_at = excluded.expires_at, ended_at = NULL,
        excesses = excluded.excesses
    WHERE known.user_id = excluded.user_id
    RETURNING round
"""
_END = """
    UPDATE approval_requests SET state = $4, ended_at = clock_now() WHERE customer_id = $1 AND environment = $2 AND id = $3
"""
_DECIDE = """
    INSERT INTO approval_decisions (customer_id, environment, request_id, round, user_id, approves, note)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
"""
_FORGET = """
    DELETE FROM approval_decisions d USING approval_requests r
    WHERE d.customer_id = $1 AND d.user_id = $2 AND r.customer_id = d.customer_id AND r.environment = d.environment
        AND r.id = d.request_id AND r.round = d.round AND r.state = 'waiting'
"""
# The waiting requests that a person has decided about in their current round.
_DECIDED = """
    SELECT r.id FROM approval_requests r JOIN approval_decisions d
        ON d.customer_id = r.customer_id AND d.environment = r.environment AND d.request_id = r.id AND d.round = r.round
    WHERE r.customer_id = $1 AND r.environment = $2 AND r.state = 'waiting' AND d.user_id = $3
"""
_DECISIONS = """
    SELECT user_id, approves, note, decided_at FROM approval_decisions
    WHERE customer_id = $1 AND environment = $2 AND request_id = $3 AND round = $4 ORDER BY decided_at, user_id
"""
_NOTED = compose("{holds} AND ($2::int IS NULL OR d.customer_id = $2)", holds=holds_address(Fragment("lower(d.note)")))
_MENTIONING = compose(
    """
    SELECT c.key AS customer, d.note, d.decided_at FROM approval_decisions d JOIN customers c ON c.id = d.customer_id
    WHERE {noted} ORDER BY d.decided_at
    """,
    noted=_NOTED,
)
_ERASE_MENTIONING = compose("UPDATE approval_decisions d SET note = '' WHERE {noted}", noted=_NOTED)
_DRAFT_CHANGED_AT = "SELECT changed_at FROM drafts WHERE customer_id = $1 AND environment = $2 AND id = $3"
_PEOPLE = "SELECT id, role FROM users WHERE customer_id = $1 AND is_active"
# A hundred at a time, found by the index of waiting requests.
_EXPIRE = """
    UPDATE approval_requests SET state = 'expired', ended_at = clock_now()
    WHERE (customer_id, environment, id) IN (
        SELECT customer_id, environment, id FROM approval_requests
        WHERE state = 'waiting' AND expires_at <= (SELECT clock_now()) ORDER BY expires_at LIMIT 100 FOR UPDATE SKIP LOCKED)
    RETURNING id, user_id
"""
# The content of a mail about a request, as long as the person is a member.
_FOR_MAIL = """
    WITH sent AS MATERIALIZED (SELECT reference FROM orders WHERE customer_id = $1 AND reference = $3)
    SELECT r.id, r.environment, r.state, r.total_minor, r.currency, r.gift_name, r.code_count, r.expires_at, q.name AS requester,
           q.id AS requester_id, u.role, r.rule_ids, EXISTS (SELECT FROM sent WHERE sent.reference = r.id) AS is_sent
    FROM users u JOIN approval_requests r ON r.customer_id = u.customer_id AND r.id = $3
    JOIN users q ON q.customer_id = r.customer_id AND q.id = r.user_id
    WHERE u.customer_id = $1 AND u.id = $2 AND u.is_active
"""


async def read_rules(connection: Connection, customer_ids: Collection[int]) -> list[ApprovalRule]:
    """Returns the rules of these customers by name, for the orders of a batch."""
    rows = await coordinator_of(connection).fetch(_RULES_OF_CUSTOMERS, sorted(set(customer_ids)))
    return sorted(map(_rule, rows), key=lambda rule: (rule.name.lower(), rule.id))


async def read_grants(connection: Connection, keys: Sequence[tuple[int, str, str]]) -> dict[str, Grant]:
    """Returns and locks the approvals of drafts by id, given by customer, environment and id."""
    rows = await coordinator_of(connection).fetch(_GRANTS, *map(list, zip(*keys, strict=True)))
    return {row["id"]: Grant(row["digest"], row["total_minor"], frozenset(row["rule_ids"])) for row in rows}


async def list_rules(connection: Connection, place: Place) -> list[ApprovalRule]:
    """Returns the rules of a customer in an environment, by name."""
    return [_rule(row) for row in await connection.fetch(_LIST_RULES, *place)]


async def find_rules(connection: Connection, customer_id: int, rule_ids: Collection[int]) -> list[ApprovalRule]:
    """Returns rules by their ids, ended ones too."""
    return [_rule(row) for row in await connection.fetch(_RULES_BY_ID, customer_id, sorted(rule_ids))]


async def add_rule(connection: Connection, rule: ApprovalRule) -> int:
    """Adds a rule and returns its id."""
    return int(
        await connection.fetchval(
            _ADD_RULE,
            rule.customer_id,
            rule.environment,
            rule.name,
            rule.role,
            rule.currency,
            rule.above_minor,
            rule.beyond_budget,
            sorted(rule.account_ids),
            sorted(rule.product_ids),
            sorted(rule.collection_ids),
            sorted(rule.approver_ids),
            rule.needed,
            rule.expires_days,
        )
    )


async def end_rule(connection: Connection, place: Place, rule_id: int) -> str | None:
    """Ends a rule and returns its name; None if there is none."""
    name: str | None = await connection.fetchval(_END_RULE, *place, rule_id)
    return name


async def find_request(
    connection: Connection, place: Place, request_id: str, *, lock: bool = False
) -> ApprovalRequest | None:
    """Returns a request; None if there is none. With `lock` it is locked until the transaction ends."""
    key = *place, request_id
    if lock:
        await connection.fetch(_LOCK, *key)  # the next statement sees what was committed during the wait
    row = await connection.fetchrow(_FIND, *key)
    return None if row is None else _request(row)


async def list_requests(
    connection: Connection, place: Place, *, most: int, user_id: int | None = None
) -> list[ApprovalRequest]:
    """Returns requests, newest first: waiting ones, others, and those of a user in the last 30 days. At most `most` of each."""
    return [_request(row) for row in await connection.fetch(_LIST, *place, most, user_id)]


async def save_request(connection: Connection, request: ApprovalRequest) -> int | None:
    """Saves a waiting request and returns its round; None if the draft has a request of another person."""
    round_: int | None = await connection.fetchval(
        _ASK,
        request.customer_id,
        request.environment,
        request.id,
        request.user_id,
        sorted(request.rule_ids),
        request.quote,
        request.digest,
        request.total_minor,
        request.currency,
        request.gift_name,
        request.code_count,
        request.draft_changed_at,
        request.asked_at,
        request.expires_at,
        [f"{one.kind}:{one.minor}:{one.budget}" for one in request.excesses],
    )
    return round_


async def end_request(connection: Connection, request: ApprovalRequest, state: str) -> None:
    """Saves the state in which a request ends. It must be locked."""
    await connection.execute(_END, request.customer_id, request.environment, request.id, state)


async def add_decision(
    connection: Connection, request: ApprovalRequest, user_id: int, note: str, *, approves: bool
) -> None:
    """Adds the decision of a person who has not decided about the request in this round."""
    key = request.customer_id, request.environment, request.id, request.round
    await connection.execute(_DECIDE, *key, user_id, approves, note)


async def forget_decisions(connection: Connection, customer_id: int, user_id: int) -> None:
    """Deletes what a person has decided about requests that wait, so that they decide again."""
    await connection.execute(_FORGET, customer_id, user_id)


async def list_decided(connection: Connection, place: Place, user_id: int) -> set[str]:
    """Returns the ids of the waiting requests that a person has decided about."""
    return {row["id"] for row in await connection.fetch(_DECIDED, *place, user_id)}


async def list_decisions(connection: Connection, request: ApprovalRequest) -> list[Decision]:
    """Returns the decisions about a request in its round."""
    key = request.customer_id, request.environment, request.id, request.round
    return [Decision(*row) for row in await connection.fetch(_DECISIONS, *key)]


async def decisions_mentioning(connection: Connection, email: str, customer_id: int | None) -> list[dict[str, object]]:
    """Returns the notes of decisions, of one customer or of all, that contain an address, for export."""
    return [dict(row) for row in await connection.fetch(_MENTIONING, email_key(email), customer_id)]


async def erase_decisions_mentioning(connection: Connection, email: str, customer_id: int | None) -> None:
    """Erases the notes of decisions that `decisions_mentioning` returns. The decisions stay."""
    await connection.execute(_ERASE_MENTIONING, email_key(email), customer_id)


async def draft_changed_at(connection: Connection, request: ApprovalRequest) -> datetime | None:
    """Returns when the draft of a request was last changed; None if it is gone."""
    changed_at: datetime | None = await connection.fetchval(
        _DRAFT_CHANGED_AT, request.customer_id, request.environment, request.id
    )
    return changed_at


async def list_people(connection: Connection, customer_id: int) -> dict[int, str]:
    """Returns the active people of a customer with their roles."""
    return {row["id"]: row["role"] for row in await connection.fetch(_PEOPLE, customer_id)}


async def expire(connection: Connection) -> list[tuple[str, int]]:
    """Ends requests that nobody decided in time. Returns each with its person. Call it inside a transaction."""
    return [(row["id"], row["user_id"]) for row in await connection.fetch(_EXPIRE)]


async def read_for_mail(connection: Connection, customer_id: int, user_id: int, request_id: str) -> Row | None:
    """Returns the content of a mail to a person about a request; None if either is gone."""
    return await connection.fetchrow(_FOR_MAIL, customer_id, user_id, request_id)


def _rule(row: Row) -> ApprovalRule:
    sets = {name: frozenset(row[name]) for name in ("account_ids", "product_ids", "collection_ids", "approver_ids")}
    return ApprovalRule(**{**row, **sets})


def _request(row: Row) -> ApprovalRequest:
    excesses = tuple(
        Excess(kind, int(minor), name) for kind, minor, name in (one.split(":", 2) for one in row["excesses"])
    )
    return ApprovalRequest(**{**row, "rule_ids": frozenset(row["rule_ids"]), "excesses": excesses})
