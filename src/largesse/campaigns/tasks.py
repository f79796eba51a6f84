"""The tasks of campaigns: the worker mails codes to visitors who may take part. Once a campaign is over, it refunds the gifts that are left."""

from collections import Counter
from datetime import timedelta

import structlog
from prometheus_client import Counter as Metric

from largesse.approvals.service import withdraw_unsent
from largesse.audit.service import Acting, by_worker
from largesse.campaigns import store, visiting
from largesse.campaigns.model import CODES_OF_CAMPAIGN, CODES_OF_MAILBOX, Campaign
from largesse.db.pool import DATABASE_AWAY, Connection, Row, commit_as_one
from largesse.db.scope import WORKER
from largesse.db.statements import plan_by_index, read_now
from largesse.drafts.store import drop_draft
from largesse.encryption.chain_keys import Chains
from largesse.jobs.outbox import add_campaign_codes
from largesse.jobs.registry import DueTimes, Old, PeriodicTask, RoomTasks, Waiting, WorkerContext
from largesse.lines.states import lock_issued
from largesse.mail.tasks import erase_campaign_codes
from largesse.orders.acts import void_lines

_ASKS_AT_ONCE = 500
_CAMPAIGNS_AT_ONCE = 20
# Gifts refunded in one transaction, which locks the account that gets the money.
_GIFTS_AT_ONCE = 500
# A draft that somebody is sending may become an order while its campaign is being closed.
_UNORDERED_FOR = timedelta(days=1)
_AGAIN_AFTER = timedelta(minutes=1)

CODES = Metric(
    "largesse_campaign_codes",
    "Codes that visitors of campaigns asked for, by whether they were mailed or ignored.",
    ["outcome"],
)

log = structlog.get_logger(__name__)


async def mail_codes(context: WorkerContext) -> bool:
    """Mails codes to visitors who asked for one and may take part. Returns whether anybody asked."""
    async with context.database.transaction(WORKER) as connection:
        await commit_as_one(connection)
        asked = await visiting.take_new(connection, _ASKS_AT_ONCE)
        if not asked:
            return False
        mailed = await _may_be_mailed(connection, asked)
        states = [(row["customer_id"], row["id"], "mailed" if row["id"] in mailed else "ignored") for row in asked]
        await visiting.decide(connection, states)
        if mailed:
            await add_campaign_codes(
                connection,
                [
                    (row["customer_id"], mailed[row["id"]], row["environment"], row["id"], row["email"])
                    for row in asked
                    if row["id"] in mailed
                ],
            )
    CODES.labels("mailed").inc(len(mailed))
    CODES.labels("ignored").inc(len(asked) - len(mailed))
    context.wake("mail")
    return True


async def _may_be_mailed(connection: Connection, asked: list[Row]) -> dict[int, int]:
    """Returns the ids of the requests for a code that get a mail, each with the id of its campaign's order."""
    orders: dict[tuple[int, int], int | None] = {}
    of_campaign: Counter[tuple[int, int]] = Counter()
    of_mailbox: Counter[tuple[int, int, str]] = Counter()
    mailed = {}
    for row in asked:
        campaign = (row["customer_id"], row["campaign_id"])
        mailbox = (*campaign, row["mailbox"])
        if campaign not in orders:
            orders[campaign] = await visiting.find_order_id(connection, campaign[0], row["order_reference"])
            of_campaign[campaign] = await visiting.count_mailed(connection, *campaign)
        order_id = orders[campaign]
        if order_id is None or not (row["is_open"] and row["may"]):
            continue
        if of_campaign[campaign] >= CODES_OF_CAMPAIGN or row["mailed"] + of_mailbox[mailbox] >= CODES_OF_MAILBOX:
            continue
        of_campaign[campaign] += 1
        of_mailbox[mailbox] += 1
        mailed[row["id"]] = order_id
    return mailed


async def end_campaigns(context: WorkerContext) -> bool:
    """Refunds the gifts that are left of campaigns that are over. Returns whether there may be more to do.

    Refunds some gifts in each transaction. If the process is killed, the next step refunds the rest.
    """
    due = await context.database.read(WORKER, store.list_due, _CAMPAIGNS_AT_ONCE)
    done = 0
    for customer_id, campaign_id in due:
        try:
            async with context.database.transaction(WORKER) as connection:
                done += await _end(connection, await context.open_chains(connection), customer_id, campaign_id)
        except DATABASE_AWAY:
            raise
        except Exception:
            log.exception("campaign.failed", customer=customer_id, campaign=campaign_id)
            # The oldest come first, so many that fail would block all others.
            async with context.database.transaction(WORKER) as connection:
                await store.put_off(connection, customer_id, campaign_id, _AGAIN_AFTER)
            done += 1
    return done > 0


async def _end(connection: Connection, chains: Chains, customer_id: int, campaign_id: int) -> bool:
    """Refunds the next gifts of a campaign, or ends it if none is left. Returns False if there is nothing to do now.

    If nothing was ordered, deletes the draft, so that nobody can order it later.
    """
    await commit_as_one(connection)
    await plan_by_index(connection)
    campaign = await store.lock_due(connection, customer_id, campaign_id)
    if campaign is None:
        return False
    order = await store.read_order(connection, campaign)
    if order is None:
        await withdraw_unsent(connection, (customer_id, campaign.environment), campaign.order_reference)
        had_draft = await drop_draft(connection, customer_id, campaign.environment, campaign.order_reference)
        if had_draft or campaign.closes_at > await read_now(connection) - _UNORDERED_FOR:
            await store.put_off(connection, customer_id, campaign_id, _UNORDERED_FOR)
        else:
            await store.end_campaign(connection, campaign)
        return True
    key = (customer_id, order["id"])
    numbers = await store.list_rest(connection, key, _GIFTS_AT_ONCE)
    rest = await lock_issued(connection, *key, numbers) if numbers else []
    if len(numbers) < _GIFTS_AT_ONCE:
        await store.end_campaign(connection, campaign)
        await visiting.drop_asks_of(connection, campaign)
        await erase_campaign_codes(connection, key)
    if rest:
        await _refund(connection, chains, campaign, order, rest)
    return True


async def _refund(connection: Connection, chains: Chains, campaign: Campaign, order: Row, rest: list[int]) -> None:
    await void_lines(connection, chains.entries, order, rest, await read_now(connection))
    await Acting(by_worker("campaigns"), chains).record(
        connection,
        "campaign.refunded",
        f"campaign {campaign.id}",
        customer_id=campaign.customer_id,
        environment=campaign.environment,
        after={
            "name": campaign.name,
            "returned": len(rest),
            "refunded_minor": order["total_minor"] // order["code_count"] * len(rest),
            "currency": order["currency"],
        },
    )


TASKS = RoomTasks(
    periodic=(
        PeriodicTask("mail_codes", mail_codes, finishes=True),
        PeriodicTask("end_campaigns", end_campaigns, every_s=2.0, finishes=True),
    ),
    retention=(Old("campaign_asks", "asked_at", days=1),),
    queues=(
        Waiting("campaign_asks", "state = 'new'", "campaign_asks_new", "asked_at", since="asked_at"),
        Waiting("campaigns", "ended_at IS NULL AND due_at <= clock_now()", "campaigns_to_end", "due_at"),
    ),
    due_times=(
        DueTimes("campaigns", ("due_at", "closes_at"), "ended_at IS NULL"),
        DueTimes("campaigns", ("opens_at",), "ended_at IS NULL"),
    ),
)
