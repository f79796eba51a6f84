"""Drafts: begins, changes and quotes a draft, and places its order once. `recipients` has the operations on its rows.

A draft is quoted when its approval is requested, and the quote is stored with the request. Only the quoted send, at that price, can be sent.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import asyncpg
import msgspec

from largesse.approvals import store as approvals
from largesse.approvals.model import MOST_DAYS, WAITING, ApprovalRequest, Excess
from largesse.approvals.service import submit, withdraw_unsent
from largesse.base.errors import InvalidRequest, NotFound, QuoteChanged, ReferenceUsed
from largesse.base.timeouts import Timeouts
from largesse.customers.actor import Actor, require_same
from largesse.customers.authenticator import Caller, person_calls
from largesse.customers.principal import Principal
from largesse.customers.roles import Right
from largesse.db.pool import Database
from largesse.db.scope import for_customer
from largesse.db.statements import read_now
from largesse.drafts import store
from largesse.drafts.checking import Checked
from largesse.drafts.model import Draft, DraftContent
from largesse.drafts.recipients import RecipientService
from largesse.orders.options import Options
from largesse.orders.order import Gift, Order
from largesse.orders.quoter import Quote, Quoter, RequestFaults
from largesse.orders.quotes import QUOTE_HOLDS
from largesse.orders.request import read_send
from largesse.orders.service import OrderService


class Placed(msgspec.Struct, frozen=True):
    """The order that a draft became."""

    reference: str
    is_new: bool  # True if this call placed it, False if an earlier call did


class DraftService:
    """The operations on drafts. Operations that change a draft raise NotFound if the person has no draft with that id."""

    def __init__(self, database: Database, orders: OrderService, quoter: Quoter, timeouts: Timeouts) -> None:
        self._database = database
        self._orders = orders
        self._quoter = quoter
        self.rows = RecipientService(database, timeouts)

    async def begin(self, actor: Actor, now: datetime, content: DraftContent) -> Draft:
        """Returns a new draft with that content."""
        async with actor.transaction(Right.SEND) as transaction:
            return await store.begin_draft(transaction.connection, actor, now, content)

    async def change(self, actor: Actor, draft_id: str, seen: DraftContent, **fields: object) -> None:
        """Replaces these fields of the draft's content. Other fields, which another page may have changed, stay.

        Raises ReadAgain if these fields are not those `seen` any more.
        """
        async with store.changing_draft(actor, draft_id) as change:
            require_same(*([getattr(content, name) for name in fields] for content in (seen, change.content)))
            change.content = msgspec.structs.replace(change.content, **fields)

    async def drop(self, actor: Actor, draft_id: str) -> None:
        """Deletes the draft, if it is still there. Withdraws the request for its approval."""
        async with actor.transaction(Right.SEND) as transaction:
            is_withdrawn = await withdraw_unsent(transaction.connection, actor.place, draft_id)
            await store.drop_draft(transaction.connection, *actor.place, draft_id)
            if is_withdrawn:
                await transaction.record("approval.withdrawn", f"send {draft_id}")

    # Price and order

    async def gift(self, caller: Caller, draft: Draft) -> tuple[Gift, Options]:
        """Returns the gift of the draft with its price, and the draft's texts completed from its template. Its gift must be chosen.

        Raises InvalidRequest if it cannot be sent.
        """
        request = msgspec.structs.replace(
            draft.to_request(caller, ()), code_quantity=1, claim_by=None, reminder_days=None, external_reference=None
        )
        spec = read_send(request, caller.principal, caller.now)
        gift, spec = await self._orders.find_gift(caller, request.choice, spec)
        return gift, spec.options

    async def gift_name(self, caller: Caller, draft: Draft) -> str:
        """Returns the name of the draft's gift. Raises as `gift` does."""
        gift, _ = await self.gift(caller, draft)
        return await self._orders.gift_name(caller, gift)

    async def quote(self, caller: Caller, draft: Draft, checked: Checked, *, holds: timedelta = QUOTE_HOLDS) -> Quote:
        """Returns the price of sending the draft, with a token that is valid for `holds`. Its gift must be chosen.

        Raises what placing the order would raise, with all faults in `errors`.
        """
        return await self._quoter.quote(caller, draft.to_request(caller, checked.recipients), RequestFaults(), holds)

    async def send(
        self, caller: Caller, draft_id: str, quote: str | None, *, check: Callable[[Order], None] | None = None
    ) -> Placed:
        """Places the order of the person's draft as quoted, and deletes the draft. A repeat returns the order of the first call.

        `check` gets the order before it is placed, and may raise.

        Raises NotFound if there is no such draft and no order of it, and InvalidRequest if it has no gift or has invalid rows. Also
        raises as `OrderService.send` does.
        """
        principal = caller.principal
        try:
            draft = await self._database.read(principal.scope, store.read_draft, principal, draft_id)
        except NotFound:
            return await self._placed_before(principal, draft_id)
        checked = await self.rows.checked(principal, draft)
        self.require_ready(draft, checked)
        try:
            request = draft.to_request(caller, checked.recipients, quote)
            await self._orders.send(caller, request, reference=draft.id, check=check)
        except ReferenceUsed as used:
            if used.holder != draft.id:
                raise
            return await self._placed_before(principal, draft_id)
        except asyncpg.UniqueViolationError:  # it was placed at the same time with another external reference
            return await self._placed_before(principal, draft_id)
        async with self._database.connection(principal.scope) as connection:
            await store.drop_draft(connection, *principal.place, draft_id)
        return Placed(draft.id, is_new=True)

    @staticmethod
    def require_ready(draft: Draft, checked: Checked) -> None:
        """Raises InvalidRequest if the draft has no gift or has invalid rows."""
        if draft.content.choice is None:
            raise InvalidRequest("`product_id` is required: no gift has been chosen.")
        if checked.bad and not draft.content.leaves_out:
            raise InvalidRequest(f"`recipients` has {len(checked.bad)} rows with mistakes.")

    async def _placed_before(self, principal: Principal, draft_id: str) -> Placed:
        """Returns the order that the person's draft became. Raises NotFound."""
        reference = await self._database.read(principal.scope, store.find_placed, principal, draft_id)
        if reference is None:
            raise NotFound("There is no draft with that reference.")
        return Placed(reference, is_new=False)


# A quote holds as long as a draft is stored after its last change. A decision takes at most MOST_DAYS of that time.
QUOTE_HOLDS = timedelta(days=MOST_DAYS + 4)


async def ask_approval(
    drafts: DraftService, database: Database, caller: Caller, actor: Actor, draft_id: str
) -> ApprovalRequest:
    """Requests approval of the person's draft, and returns the request.

    Raises NotFound, NobodyMayApprove, QuoteChanged if the draft changes at the same moment, and InvalidRequest if it needs no approval. Also
    raises as `DraftService.quote` does.
    """
    draft = await database.read(caller.principal.scope, store.read_draft, caller.principal, draft_id)
    # Fixes the defaults, which count from now, as an approval is for one date and its reminders.
    claim_by, reminder_days = draft.claim_by(caller), draft.reminder_days(caller)
    content = msgspec.structs.replace(draft.content, claim_by=claim_by, has_claim_by=True, reminder_days=reminder_days)
    draft = msgspec.structs.replace(draft, content=content)
    checked = await drafts.rows.checked(caller.principal, draft)
    drafts.require_ready(draft, checked)
    quote = await drafts.quote(caller, draft, checked, holds=QUOTE_HOLDS)
    gift_name = await drafts.gift_name(caller, draft)
    if not quote.rules:
        raise InvalidRequest("The send needs no approval.")
    principal = caller.principal
    async with actor.transaction(Right.SEND) as transaction:
        connection = transaction.connection
        locked = await store.read_draft(connection, actor, draft_id, lock=True)
        if locked.changed_at != draft.changed_at:
            raise QuoteChanged("The draft was changed meanwhile.")
        # After this, the draft is stored for two weeks from now.
        await store.save_draft(connection, actor, draft_id, content)
        now = await read_now(connection)
        expires_at = now + timedelta(days=min(rule.expires_days for rule in quote.rules))
        # After either of these times, it cannot be placed.
        last = (None if content.code_quantity is not None else content.send_at, claim_by)
        expires_at = min([expires_at, *(at for at in last if at is not None)])
        assert principal.user_id is not None, "a person"
        request = ApprovalRequest(
            customer_id=principal.customer_id,
            environment=principal.environment,
            id=draft_id,
            round=1,
            user_id=principal.user_id,
            state=WAITING,
            rule_ids=frozenset(rule.id for rule in quote.rules),
            quote=quote.token,
            digest=quote.digest,
            total_minor=quote.total_minor,
            currency=quote.currency,
            gift_name=gift_name,
            code_count=quote.code_count,
            draft_changed_at=(await store.read_draft(connection, actor, draft_id)).changed_at,
            asked_at=now,
            expires_at=expires_at,
            ended_at=None,
            is_sent=False,
            excesses=excesses(quote),
        )
        await submit(transaction, request, quote.rules)
    return request


def excesses(quote: Quote) -> tuple[Excess, ...]:
    """Returns the budgets that a quoted send exceeds."""
    gift_minor = quote.total_minor // quote.code_count
    found = []
    for one in quote.budgets:
        most = one.budget.per_gift_minor
        if most is not None and gift_minor > most:
            found.append(Excess("per_gift", most, one.budget.name))
        if one.before_minor is not None and quote.total_minor > one.before_minor:
            found.append(Excess("over", quote.total_minor - one.before_minor, one.budget.name))
    return tuple(found)


async def send_approved(drafts: DraftService, database: Database, request: ApprovalRequest) -> Placed:
    """Places the order of an approved request, as its person. A repeat returns the order of the first call.

    Raises Unauthorized for a person who may no longer send, and raises as `DraftService.send` does.
    """
    async with database.connection(for_customer(request.customer_id, request.environment)) as connection:
        current = await approvals.find_request(connection, (request.customer_id, request.environment), request.id)
        caller = await person_calls(
            connection,
            user_id=request.user_id,
            customer_id=request.customer_id,
            environment=request.environment,
            session_id=None,
        )
    if current is None or current.state != "approved":
        raise InvalidRequest("The send is not approved.")
    return await drafts.send(caller, request.id, current.quote)
