"""What visitors of a campaign can do: see it, ask for a code, and get a gift with it. Also the SQL of their requests for a code.

Asking does not show who may take part: it writes the same row for any address, and the worker decides who gets a mail. A campaign's row is locked
while a gift is given, so that it gives no more than it has, and one to each mailbox.
"""

from collections.abc import Sequence
from enum import Enum, auto

import msgspec
from prometheus_client import Counter

from largesse.base.confidential import Confidential
from largesse.base.errors import TooManyRequests, existing
from largesse.base.throttle import Pacer, Waits, network_of
from largesse.campaigns import store
from largesse.campaigns.model import CODE_LASTS, CODES_OF_CAMPAIGN, Campaign, State, mailbox_of
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Database, Row, act_for, commit_as_one, is_distributed
from largesse.db.scope import LOOKUP, for_customer
from largesse.db.statements import count_changed, read_now
from largesse.encryption.chain_keys import Chains
from largesse.encryption.vault import Vault
from largesse.jobs.outbox import add_gift_mail
from largesse.lines.attempts import count_ask, forget_wrong_codes, read_guesses, record_wrong_code
from largesse.lines.claiming import RecipientSlots
from largesse.lines.codes import claim_link, is_asked_code, open_code
from largesse.lines.states import LineKey, lock_issued
from largesse.lines.states import State as LineState
from largesse.lines.store import Line, address_line, read_line, read_progress
from largesse.orders.marks import changing_orders
from largesse.reports.updates import remember_recipient

_ADD = """
    INSERT INTO campaign_asks (customer_id, environment, campaign_id, mailbox, email, language, asked_at)
    VALUES ($1, $2, $3, $4, $5, $6, clock_now())
"""
# The last request for a mailbox that was mailed. One that waits, or is above the limit, leaves the previous code valid. Otherwise anybody could make a visitor's code invalid.
_LATEST = """
    SELECT id, email, language, asked_at > (SELECT clock_now()) - $4::interval AS counts FROM campaign_asks
    WHERE customer_id = $1 AND campaign_id = $2 AND mailbox = $3 AND state = 'mailed' ORDER BY id DESC LIMIT 1 FOR UPDATE
"""
# Another worker that reads the same rows waits, and then finds them decided.
_LOCK_NEW = """
    SELECT customer_id, id FROM campaign_asks WHERE state = 'new' ORDER BY asked_at, id LIMIT $1 FOR UPDATE
"""
# The facts that decide about each request, and how many mails its mailbox got in the last hour.
_TO_DECIDE = """
    SELECT a.customer_id, a.environment, a.id, a.campaign_id, a.mailbox, a.email, c.order_reference,
           c.ended_at IS NULL AND c.paused_at IS NULL AND c.opens_at <= now AND c.closes_at > now AS is_open,
           split_part(a.mailbox, '@', 2) = ANY(c.domains) OR p.mailbox IS NOT NULL AS may,
           (SELECT count(*) FROM campaign_asks m
            WHERE m.customer_id = a.customer_id AND m.campaign_id = a.campaign_id AND m.mailbox = a.mailbox AND m.state = 'mailed'
              AND m.asked_at > now - interval '1 hour')::int AS mailed
    FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, id)
    JOIN campaign_asks a ON a.customer_id = wanted.customer_id AND a.id = wanted.id
    JOIN campaigns c ON c.customer_id = a.customer_id AND c.id = a.campaign_id
    LEFT JOIN campaign_people p ON p.customer_id = a.customer_id AND p.campaign_id = a.campaign_id AND p.mailbox = a.mailbox
    CROSS JOIN (SELECT clock_now()) AS clock (now)
    ORDER BY a.id
"""
_COUNT_MAILED = """
    SELECT count(*)::int FROM (
        SELECT FROM campaign_asks WHERE customer_id = $1 AND campaign_id = $2 AND state = 'mailed'
        AND asked_at > (SELECT clock_now()) - interval '1 hour' LIMIT $3) AS mailed
"""
_DECIDE = """
    UPDATE campaign_asks SET state = decided.state
    FROM unnest($1::int[], $2::int[], $3::text[]) AS decided (customer_id, id, state)
    WHERE campaign_asks.customer_id = decided.customer_id AND campaign_asks.id = decided.id
"""
_ORDER_ID = "SELECT id FROM orders WHERE customer_id = $1 AND reference = $2"
_OF_MAILBOX = Fragment("WHERE mailbox = $1 AND ($2::int IS NULL OR customer_id = $2)")
_LIST = compose(
    """
    SELECT k.key AS customer, a.environment, c.name AS campaign, a.email, a.language, a.state, a.asked_at
    FROM (SELECT * FROM campaign_asks {of_mailbox}) AS a JOIN campaigns c ON c.customer_id = a.customer_id AND c.id = a.campaign_id
    JOIN customers k ON k.id = a.customer_id ORDER BY a.asked_at, a.id
""",
    of_mailbox=_OF_MAILBOX,
)
_DROP = compose("DELETE FROM campaign_asks {of_mailbox}", of_mailbox=_OF_MAILBOX)
_DROP_OF_CAMPAIGN = "DELETE FROM campaign_asks WHERE customer_id = $1 AND campaign_id = $2"


async def take_new(connection: Connection, limit: int) -> list[Row]:
    """Returns and locks the undecided code requests, with the facts that decide. Call it inside a transaction."""
    keys = await connection.fetch(_LOCK_NEW, limit)
    if not keys:
        return []
    return await connection.fetch(_TO_DECIDE, [key["customer_id"] for key in keys], [key["id"] for key in keys])


async def count_mailed(connection: Connection, customer_id: int, campaign_id: int) -> int:
    """Returns how many codes were mailed for a campaign in the last hour. Counts up to CODES_OF_CAMPAIGN."""
    return int(await connection.fetchval(_COUNT_MAILED, customer_id, campaign_id, CODES_OF_CAMPAIGN))


async def find_order_id(connection: Connection, customer_id: int, reference: str) -> int | None:
    """Returns the id of a campaign's order. None if it was not placed."""
    order_id: int | None = await connection.fetchval(_ORDER_ID, customer_id, reference)
    return order_id


async def decide(connection: Connection, decided: Sequence[tuple[int, int, str]]) -> None:
    """Saves the decision about each request: customer, number and state."""
    await connection.execute(_DECIDE, *map(list, zip(*decided, strict=True)))


async def drop_asks_of(connection: Connection, campaign: Campaign) -> None:
    """Deletes the code requests of a campaign."""
    await connection.execute(_DROP_OF_CAMPAIGN, campaign.customer_id, campaign.id)


async def list_asks(connection: Connection, email: str, customer_id: int | None) -> list[Row]:
    """Returns the recent code requests for a mailbox, of one customer's campaigns or of all, the earliest first."""
    return await connection.fetch(_LIST, mailbox_of(email), customer_id)


async def forget_asks(connection: Connection, email: str, customer_id: int | None) -> int:
    """Deletes the code requests for a mailbox. Returns how many."""
    return await count_changed(connection, _DROP, mailbox_of(email), customer_id)


_REMEMBERED_ADDRESSES = 10_000
# How many callers a process refuses in a second at most, as for claims.
_REFUSED_PER_S = 200.0
_NOTHING_ASKED = 0  # no request for a code has this id
_NO_CAMPAIGN = "This link leads to no campaign."


GIVEN = Counter("largesse_campaign_gifts_given", "Gifts that visitors of campaigns got.")


class Outcome(Enum):
    """The result of a code that a visitor typed."""

    GIVEN = auto()
    HAD = auto()
    """The mailbox had its gift before; it gets that one."""
    WITHDRAWN = auto()
    """The mailbox had its gift before, which the company has withdrawn or whose data was erased."""
    REFUSED = auto()
    """A wrong or old code, or too many wrong ones: the answer does not say which."""
    NOT_OPEN = auto()
    """The code was right, but there is no gift now: the page says why."""


class Seen(msgspec.Struct, frozen=True):
    """A campaign as its page shows it."""

    campaign: Campaign
    state: State
    order: Row | None
    days_left: int


class Visit(Confidential, frozen=True):
    """The outcome of a code, and the gift's link and PIN if there is one. Its repr hides them."""

    outcome: Outcome
    link: str = ""
    pin: str = ""


class Visiting:
    """The campaigns of an environment, for their visitors."""

    def __init__(
        self, database: Database, vault: Vault, chains: Chains, environment: str, public_url: str, slots: RecipientSlots
    ) -> None:
        self._database = database
        self._vault = vault
        self._chains = chains
        self._environment = environment
        self._public_url = public_url
        self._slots = slots
        self._pacer = Pacer(_REFUSED_PER_S)
        self._slowed: Waits[bytes] = Waits(remembered=_REMEMBERED_ADDRESSES)

    async def see(self, token: str) -> Seen:
        """Returns the campaign of a link. Raises NotFound; also for one whose gifts were never ordered."""
        async with self._slots.looks, self._database.transaction(LOOKUP) as connection:
            campaign = await self._find(connection, token)
            return await self._see(connection, campaign)

    async def ask(self, token: str, email: str, host: str, language: str) -> Seen:
        """Mails a code to an address in its normal form, if it may take part. The answer does not show whether it may.

        Raises NotFound and TooManyRequests.
        """
        async with self._slots.changes, self._database.transaction(LOOKUP) as connection:
            campaign = await self._find(connection, token)
            seen = await self._see(connection, campaign)
            if seen.state is State.OPEN:
                if wait_s := await count_ask(connection, self._vault, host):
                    raise TooManyRequests("Too many codes were requested from your network.", retry_after_s=wait_s)
                key = (campaign.customer_id, campaign.environment, campaign.id)
                await connection.execute(_ADD, *key, mailbox_of(email), email, language)
        return seen

    async def take(self, token: str, email: str, typed: str, host: str) -> Visit:
        """Gives the mailbox of an address its gift if the code is right. Raises NotFound and TooManyRequests.

        Wrong codes are counted as wrong PINs are, for the mailbox and the network together, and for the mailbox alone.
        """
        network = network_of(host)
        if wait_s := self._slowed.left_s(network):
            raise TooManyRequests("Too many wrong codes came from your network.", retry_after_s=wait_s)
        async with self._slots.changes, self._database.transaction(LOOKUP) as connection:
            visit = await self._take(connection, await self._find(connection, token), email, typed, host)
        if visit.outcome is Outcome.GIVEN:
            GIVEN.inc()
        if visit.outcome is Outcome.REFUSED:
            await self._pacer.turn()
        return visit

    async def _take(self, connection: Connection, campaign: Campaign, email: str, typed: str, host: str) -> Visit:
        mailbox = mailbox_of(email)
        # The row stays locked, so that wrong codes for a mailbox are counted one after the other.
        asked = await connection.fetchrow(_LATEST, campaign.customer_id, campaign.id, mailbox, CODE_LASTS)
        ask_id = _NOTHING_ASKED if asked is None else asked["id"]
        secret = b"campaign/%d/%d/%s" % (campaign.customer_id, campaign.id, mailbox.encode())
        guesses = await read_guesses(connection, self._vault, secret, host)
        if guesses.wait:
            wait_s = guesses.wait.total_seconds()
            self._slowed.tell(network_of(host), wait_s)
            raise TooManyRequests("Too many wrong codes came from your network.", retry_after_s=wait_s)
        is_right = is_asked_code(self._vault, campaign.customer_id, ask_id, typed)
        if asked is None or not (is_right and asked["counts"]) or guesses.is_paused:
            await record_wrong_code(connection, guesses)
            return Visit(Outcome.REFUSED)
        await commit_as_one(connection)
        await forget_wrong_codes(connection, guesses)
        return await self._give(connection, campaign, mailbox, asked)

    async def _give(self, connection: Connection, campaign: Campaign, mailbox: str, asked: Row) -> Visit:
        """Gives a mailbox a gift, or returns the one that it already has.

        First checks without the campaign's lock whether the mailbox has a gift and whether any is left, as many visitors would wait for
        the lock. Neither fact changes back.
        """
        order = await store.read_order(connection, campaign)
        if order is None:
            return Visit(Outcome.NOT_OPEN)
        key = (campaign.customer_id, order["id"])
        _, number = await store.read_gift_of(connection, campaign, mailbox)
        if number is not None:
            return await self._had(connection, LineKey(*key, number))
        if await store.next_line(connection, key, campaign.given_through) is None:
            return Visit(Outcome.NOT_OPEN)
        return await self._give_next(connection, campaign, order, mailbox, asked)

    async def _give_next(
        self, connection: Connection, campaign: Campaign, order: Row, mailbox: str, asked: Row
    ) -> Visit:
        address = asked["email"]
        key = (campaign.customer_id, order["id"])
        locked = await store.lock_campaign(connection, (campaign.customer_id, self._environment), campaign.id)
        assert locked is not None, "campaigns are never deleted"
        is_listed, number = await store.read_gift_of(connection, locked, mailbox)
        if number is not None:
            return await self._had(connection, LineKey(*key, number))
        may = is_listed or mailbox.rpartition("@")[2] in locked.domains
        state = locked.state(await read_now(connection), is_ordered=True, has_left=True)
        if not may or state is not State.OPEN:
            return Visit(Outcome.NOT_OPEN)
        async with changing_orders(connection, self._chains.entries, key[0], [key[1]], waits=True):
            line = await _lock_next(connection, key, locked.given_through)
            if line is None:
                return Visit(Outcome.NOT_OPEN)
            await address_line(connection, line, address)
        given = await store.give(connection, locked, mailbox, line, asked["language"])
        assert given, "the campaign is locked"
        await add_gift_mail(connection, line, self._environment, address)
        await remember_recipient(connection, order, address)  # the search finds the order by the address
        return self._visit(connection, Outcome.GIVEN, await self._read(connection, line))

    async def _had(self, connection: Connection, key: LineKey) -> Visit:
        line = await self._read(connection, key)
        if not line.has_email or (await read_progress(connection, key)).state is LineState.CANCELLED:
            return Visit(Outcome.WITHDRAWN)
        return self._visit(connection, Outcome.HAD, line)

    def _visit(self, connection: Connection, outcome: Outcome, line: Line) -> Visit:
        code = open_code(self._vault, line.sealed, line.reference, line.number)
        whose = line.customer_id if is_distributed(connection) else None
        return Visit(outcome, claim_link(code, self._vault, self._public_url, whose), code.pin_text)

    async def _read(self, connection: Connection, key: LineKey) -> Line:
        line = await read_line(connection, key, self._environment)
        assert line is not None, "lines are never deleted"
        return line

    async def _find(self, connection: Connection, token: str) -> Campaign:
        """Returns the campaign of a link, and makes the transaction act for its customer. Raises NotFound."""
        found = existing(await store.find_by_token(connection, token, self._environment), _NO_CAMPAIGN)
        await act_for(connection, for_customer(found[0], self._environment))
        return await store.find_campaign(connection, (found[0], self._environment), found[1])

    async def _see(self, connection: Connection, campaign: Campaign) -> Seen:
        order = existing(await store.read_order(connection, campaign), _NO_CAMPAIGN)
        key = (campaign.customer_id, order["id"])
        left = await store.next_line(connection, key, campaign.given_through)
        now = await read_now(connection)
        state = campaign.state(now, is_ordered=True, has_left=left is not None)
        return Seen(campaign, state, order, max((campaign.closes_at - now).days, 0))


async def _lock_next(connection: Connection, order: tuple[int, int], after: int) -> LineKey | None:
    """Locks the next gift that nobody has and that is not cancelled. Returns None if there is none."""
    while (number := await store.next_line(connection, order, after)) is not None:
        if await lock_issued(connection, *order, [number]):
            return LineKey(*order, number)
        after = number
    return None
