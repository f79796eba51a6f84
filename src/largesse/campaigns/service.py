"""Operations on campaigns: creating, changing, pausing and ending them.

A campaign reserves its money with an order of codes. Each visitor gets one of them. The order begins as a draft of its person, so that prices,
budgets, balances and approvals apply as to any send.
"""

import base64
import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from largesse.approvals.model import APPROVED
from largesse.approvals.service import withdraw_unsent
from largesse.approvals.store import find_request
from largesse.base.errors import HasEnded, InvalidRequest, NotFound
from largesse.campaigns import model, store
from largesse.customers.access import is_own
from largesse.customers.actor import Actor, Transaction, require_same
from largesse.customers.authenticator import Caller
from largesse.customers.customer_store import lock_customer
from largesse.customers.roles import Right
from largesse.db.pool import Connection, Row
from largesse.db.statements import read_now
from largesse.drafts.model import DraftContent
from largesse.drafts.store import begin_draft, drop_draft, read_draft, save_draft, take_draft
from largesse.orders.follow_ups import MAX_CLAIM_BY_DAYS, read_defaults

_TOKEN_BYTES = 12


class TooManyCampaigns(
    InvalidRequest, rule=f"A customer has at most {model.MOST_CAMPAIGNS} campaigns in an environment."
):
    """The customer has as many campaigns as it may."""


class IsReserved(InvalidRequest, rule="The campaign's gifts were ordered already."):
    """The gifts of a campaign are ordered, so what its visitors see cannot be changed."""


class Progress(NamedTuple):
    """A campaign with its order and its gifts. Without an order there are no `counts`; a list of campaigns leaves them out."""

    campaign: model.Campaign
    state: model.State
    order: Row | None
    taken: int
    counts: store.GiftCounts | None = None

    @property
    def gifts(self) -> int:
        """How many gifts the campaign has, or will have once they are reserved."""
        return self.campaign.gifts if self.order is None else int(self.order["code_count"])

    @property
    def each_minor(self) -> int:
        """The cost of one gift, in minor units."""
        return 0 if self.order is None else self.order["total_minor"] // self.order["code_count"]


async def create_campaign(actor: Actor, caller: Caller, rule: model.CampaignRule) -> model.Campaign:
    """Creates a campaign and the draft of its order. Reserves nothing yet. Raises CampaignFault for a fault of the rule, and TooManyCampaigns."""
    async with actor.transaction(Right.SEND) as transaction:
        connection = transaction.connection
        await lock_customer(connection, actor.customer_id)
        if await connection.fetchval(store.COUNT, *actor.place) >= model.MOST_CAMPAIGNS:
            raise TooManyCampaigns
        now = await read_now(connection)
        await _check(connection, actor, rule, now, 0)
        draft = await begin_draft(connection, actor, now, _content(caller, rule))
        token = base64.urlsafe_b64encode(os.urandom(_TOKEN_BYTES)).decode()
        assert actor.user_id is not None, "a person sets it"
        campaign_id = await store.insert_campaign(connection, (*actor.place, actor.user_id), token, draft.id, rule)
        campaign = await store.find_campaign(connection, actor.place, campaign_id)
        await transaction.record("campaign.created", _subject(campaign_id), after=_facts(rule))
    return campaign


async def change_campaign(
    actor: Actor, caller: Caller, campaign_id: int, rule: model.CampaignRule, seen: model.CampaignRule | None = None
) -> None:
    """Changes a campaign whose gifts are not ordered yet. It belongs to the actor from then on, who orders them.

    Makes the draft again if it was deleted, as drafts are after two weeks. Withdraws an approval, which was for the old settings.

    Raises NotFound, IsReserved, CampaignFault, and ReadAgain if its settings are not those `seen` any more.
    """
    async with actor.transaction(Right.SEND) as transaction:
        connection = transaction.connection
        await lock_customer(connection, actor.customer_id)
        campaign = await _locked(transaction, campaign_id)
        if await store.read_order(connection, campaign) is not None:
            raise IsReserved
        now = await read_now(connection)
        await _check(connection, actor, rule, now, campaign_id)
        content = _content(caller, rule)
        assert actor.user_id is not None, "a person sets it"
        is_withdrawn = campaign.user_id != actor.user_id and await _take_over(transaction, campaign)
        try:
            draft = await read_draft(connection, actor, campaign.order_reference, lock=True)
            require_same(seen, await read_rule(connection, campaign, draft.content))
            await save_draft(connection, actor, draft.id, content)
        except NotFound:
            if await store.read_order(connection, campaign) is not None:  # it was sent just now
                raise IsReserved from None
            draft = await begin_draft(connection, actor, now, content)
        is_withdrawn |= await withdraw_unsent(connection, actor.place, campaign.order_reference, {APPROVED})
        if await store.read_order(connection, campaign) is not None:  # it was sent while the approval was locked
            raise IsReserved
        before = _facts(await read_rule(connection, campaign, draft.content))
        await store.change_campaign(connection, campaign, rule, draft.id, actor.user_id)
        if is_withdrawn:
            await transaction.record("approval.withdrawn", f"send {campaign.order_reference}")
        await transaction.record("campaign.changed", _subject(campaign_id), before=before, after=_facts(rule))


async def _take_over(transaction: Transaction, campaign: model.Campaign) -> bool:
    """Makes the draft of another person's campaign the actor's. Returns whether a request for its approval was withdrawn.

    A draft whose approval was requested is deleted: it may have been the actor who approved it.
    """
    connection, actor = transaction.connection, transaction.actor
    if await find_request(connection, actor.place, campaign.order_reference, lock=True) is None:
        await take_draft(connection, actor, campaign.order_reference)
        return False
    await drop_draft(connection, *actor.place, campaign.order_reference)
    return await withdraw_unsent(connection, actor.place, campaign.order_reference)


async def pause_campaign(actor: Actor, campaign_id: int, *, paused: bool) -> None:
    """Pauses a campaign, or resumes it. Raises NotFound."""
    async with actor.transaction(Right.SEND) as transaction:
        campaign = await _locked(transaction, campaign_id)
        if (campaign.paused_at is not None) != paused:
            await store.pause_campaign(transaction.connection, campaign, paused=paused)
            act = "campaign.paused" if paused else "campaign.resumed"
            await transaction.record(act, _subject(campaign_id), after={"name": campaign.name})


async def close_campaign(actor: Actor, campaign_id: int) -> model.Campaign:
    """Ends a campaign now. The worker refunds the rest. Visitors keep their gifts. Raises NotFound. If nothing was ordered, deletes its draft."""
    async with actor.transaction(Right.SEND) as transaction:
        connection = transaction.connection
        campaign = await _locked(transaction, campaign_id)
        await store.close_campaign(connection, campaign)
        await withdraw_unsent(connection, actor.place, campaign.order_reference)
        await drop_draft(connection, *actor.place, campaign.order_reference)
        await transaction.record("campaign.closed", _subject(campaign_id), before={"name": campaign.name})
    return campaign


async def read_progress(connection: Connection, campaign: model.Campaign) -> Progress:
    """Returns a campaign with its order and its gifts."""
    order = (await store.read_orders(connection, campaign.customer_id, [campaign.order_reference])).get(
        campaign.order_reference
    )
    taken = await store.count_taken(connection, campaign.customer_id, [campaign.id])
    counts = None if order is None else await store.count_gifts(connection, campaign.customer_id, order["id"])
    has_left = counts is not None and counts.left > 0
    state = campaign.state(await read_now(connection), is_ordered=order is not None, has_left=has_left)
    return Progress(campaign, state, order, taken.get(campaign.id, 0), counts)


async def is_over(connection: Connection, campaign: model.Campaign) -> bool:
    """Returns whether a campaign has ended, or its last day is over."""
    return campaign.ended_at is not None or campaign.closes_at <= await read_now(connection)


async def read_rule(connection: Connection, campaign: model.Campaign, content: DraftContent) -> model.CampaignRule:
    """Returns the settings of a campaign whose gifts are not ordered yet."""
    listed = [] if campaign.domains else await store.read_list(connection, campaign, model.MOST_ADDRESSES)
    return model.CampaignRule(
        name=campaign.name,
        template_id=content.template_id or 0,
        account_id=content.account_id,
        gifts=content.code_quantity or campaign.gifts,
        opens_at=campaign.opens_at,
        closes_at=campaign.closes_at,
        greeting=campaign.greeting,
        domains=tuple(campaign.domains),
        mailboxes=tuple(listed),
    )


async def _check(
    connection: Connection, actor: Actor, rule: model.CampaignRule, now: datetime, campaign_id: int
) -> None:
    """Raises CampaignFault for the first field of a rule that is wrong."""
    model.check_rule(rule, now)
    if await store.is_named(connection, actor.place, rule.name, campaign_id):
        raise model.CampaignFault("name", "is the name of another campaign.")


def _content(caller: Caller, rule: model.CampaignRule) -> DraftContent:
    """Returns the draft of a campaign's order. The customer's default claim-by date counts from the end of the campaign."""
    claim_by = read_defaults(caller.follow_up).claim_by(rule.closes_at)
    if claim_by is not None:
        claim_by = min(claim_by, caller.now + timedelta(days=MAX_CLAIM_BY_DAYS - 1))
    return DraftContent(
        template_id=rule.template_id,
        code_quantity=rule.gifts,
        account_id=rule.account_id,
        claim_by=claim_by,
        has_claim_by=True,
        reminder_days=(),
        is_campaign=True,
    )


async def _locked(transaction: Transaction, campaign_id: int) -> model.Campaign:
    """Returns and locks a campaign that is not over and that the actor may change. Raises NotFound."""
    actor, connection = transaction.actor, transaction.connection
    campaign = await store.lock_campaign(connection, actor.place, campaign_id)
    if campaign is None or (actor.caller is not None and not is_own(actor.caller, None, campaign.user_id)):
        raise NotFound("There is no such campaign.")
    if await is_over(connection, campaign):
        raise HasEnded("The campaign has ended.")
    return campaign


def _facts(rule: model.CampaignRule) -> Mapping[str, Any]:
    """Returns a rule for the audit log, without addresses."""
    facts = msgspec.to_builtins(rule)
    facts["listed"] = len(facts.pop("mailboxes"))
    return {name: value for name, value in facts.items() if value not in (None, [], 0)}


def _subject(campaign_id: int) -> str:
    return f"campaign {campaign_id}"
