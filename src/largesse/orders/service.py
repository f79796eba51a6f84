"""Sending: from a request to a placed order."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import UNSET

from largesse.base.cooperative import CooperativeRunner, FairTurns, Result, Steps, Turn, first_slice
from largesse.base.errors import InvalidRequest, Problem
from largesse.base.timeouts import Timeouts
from largesse.catalogue.cache import Catalogue
from largesse.customers.access import StaleCaller
from largesse.customers.authenticator import Caller
from largesse.customers.principal import Principal
from largesse.db.pool import Database
from largesse.encryption.vault import Vault
from largesse.ledger import payment_sources
from largesse.ledger.own_accounts import OwnAccountCache
from largesse.ledger.store import list_funding_accounts
from largesse.lines.codes import SealedCodes, draw_many, give_codes
from largesse.orders import completing, placeholders
from largesse.orders.ids import new_reference
from largesse.orders.order import Gift, Order, SendResponse, new_order, new_receipt
from largesse.orders.placer import Placer, is_large
from largesse.orders.quotes import QUOTE_REFUSED, request_digest, require_quoted
from largesse.orders.reading import read_references
from largesse.orders.recipients import OrderRecipient, Recipient, read_recipients
from largesse.orders.request import (
    Choice,
    CollectionChoice,
    OrderSpec,
    ProductChoice,
    SendGift,
    SendRequest,
    TemplateChoice,
    TextedTemplateChoice,
    read_reference,
    read_send,
)
from largesse.orders.rules import NO_SUCH_ACCOUNT, AccountsGone, reference_used, require_currency
from largesse.templates.store import Template, read_template

# How many orders of one customer a process handles at once while others order too. Sixteen keep batches large enough.
# An order waits for the event loop seven times: without this limit, a single order of another customer takes twice as long.
_EACH_UNDER_WAY = 16
_MAX_UNDER_WAY = 5_000
_ALONE_AFTER_S = 1.0


class OrderService:
    """Checks the orders that callers send, draws their codes, and has them placed."""

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        placer: Placer,
        own_accounts: OwnAccountCache,
        vault: Vault,
        timeouts: Timeouts,
        public_url: str,
        *,
        failure_of: Callable[[SendRequest], Problem | None] | None = None,
    ) -> None:
        """`failure_of` returns the error that a request of the test lab gets on purpose. It is None in production."""
        self._database = database
        self._catalogue = catalogue
        self._placer = placer
        self._own_accounts = own_accounts
        self._vault = vault
        self._timeouts = timeouts
        self._public_url = public_url
        self._failure_of = failure_of
        self._runner = CooperativeRunner()
        self._turns: FairTurns[int] = FairTurns(
            at_once=_MAX_UNDER_WAY,
            each=_EACH_UNDER_WAY,
            max_waiting=_MAX_UNDER_WAY,
            alone_after_s=_ALONE_AFTER_S,
            is_paced=True,
        )

    async def send(
        self,
        caller: Caller,
        request: SendRequest,
        *,
        reference: str | None = None,
        check: Callable[[Order], None] | None = None,
    ) -> SendResponse:
        """Places the order of a request. `check` may refuse it by raising an error. `reference` is the order's public key, by default a new one.

        Checks in the contract's order: a used reference comes before all other errors, then a quote that is no longer valid, and the balance
        last. Raises ReferenceUsed, InvalidRequest, those of QUOTE_REFUSED, InsufficientBalance, and the errors of `Placer.place`. For a
        remembered caller, raises StaleCaller if a refusal might depend on who calls or when.
        """
        if caller.remembered is not None and not _may_be_prepared(request):
            raise StaleCaller
        await self.fail_on_purpose(caller, request)
        async with self._turns.turn(caller.principal.customer_id) as turn:
            try:
                order = await self._prepare(caller, request, reference)
            except Problem as refusal:
                if caller.remembered is not None:
                    raise StaleCaller from None
                if isinstance(refusal, (InvalidRequest, *QUOTE_REFUSED)):
                    await self.refuse_used_reference(caller.principal, request.external_reference)
                raise
            if check is not None:
                check(order)
            if not is_large(order.code_count):
                await self._place(order, turn)
                return await self._answer(order)
            # The receipt of a large order is made while the database writes its lines. It is placed or refused even if the caller goes away.
            placing = asyncio.create_task(self._place(order, turn))
            try:
                answer = await self._answer(order)
            finally:
                await placing
            return answer

    async def fail_on_purpose(self, caller: Caller, request: SendRequest) -> None:
        """Raises the error that a request of the test lab gets on purpose, or ReferenceUsed if its reference is used. Does nothing in production."""
        if self._failure_of is None or (failure := self._failure_of(request)) is None:
            return
        if caller.remembered is not None:
            raise StaleCaller
        await self.refuse_used_reference(caller.principal, request.external_reference)
        raise failure

    async def _answer(self, order: Order) -> SendResponse:
        if order.recipients:
            return new_receipt(order.row, [])
        whose = order.row.customer_id if self._database.is_distributed else None
        return new_receipt(order.row, await give_codes(order.codes, self._vault, self._public_url, whose))

    async def _place(self, order: Order, turn: Turn[int]) -> None:
        try:
            await self._placer.place(order, on_locked=turn.end)
        except AccountsGone:
            again = order.with_own_accounts(await self._own_accounts.renew(order.own_key))
            if again.account_ids == order.account_ids:
                raise
            await self._place(again, turn)
        except InvalidRequest:  # the funding account cannot be used
            if order.remembered is not None:
                raise StaleCaller from None
            await self.check_some_account(order.principal)
            raise

    async def refuse_used_reference(self, principal: Principal, reference: str | None) -> None:
        """Raises ReferenceUsed if an order of the customer has that reference, and InvalidRequest if no order can have it."""
        await self._check_reference_free(principal, read_reference(reference))

    async def read_recipients(
        self, principal: Principal, given: Iterable[Recipient | InvalidRequest]
    ) -> tuple[OrderRecipient, ...]:
        """Returns the checked recipients. Handles one request of a customer at a time. Raises InvalidRequest with all wrong recipients."""
        return await self._finish(principal, read_recipients(given, is_lab=_has_lab(principal)))

    async def _prepare(self, caller: Caller, request: SendRequest, reference: str | None) -> Order:
        principal = caller.principal
        spec = read_send(request, principal, caller.now)
        await self.check_account_given(principal, spec)
        gift, spec = await self.find_gift(caller, request.choice, spec)
        if request.recipients:
            recipients = await self._read_recipients(principal, spec, gift, request.recipients)
            spec = msgspec.structs.replace(spec, recipients=recipients)
        quoted = None
        if request.quote is not None:
            require_quoted(self._vault, caller, request.quote, gift, spec)
            quoted = None if principal.user_id is None else request_digest(gift, spec)
        spec = completing.with_default(caller, spec)
        messages: tuple[str, ...] = ()
        if request.placeholders and placeholders.has_placeholders(spec.options.message):
            spec, messages = await self._fill_in(principal, spec)
        reference = reference or new_reference(caller.now)
        codes = await draw_many(spec.code_count)
        sealed = SealedCodes(self._vault, codes, reference)
        order = new_order(
            reference=reference,
            caller=caller,
            gift=gift,
            spec=spec,
            own_accounts=await self._own_accounts.find((principal.customer_id, principal.environment, gift.currency)),
            codes=codes,
            sealed=sealed if is_large(spec.code_count) else list(sealed),
            messages=messages,
        )
        return order if quoted is None else msgspec.structs.replace(order, quoted=quoted)

    async def check_message(self, principal: Principal, spec: OrderSpec) -> None:
        """Raises InvalidRequest for a placeholder in the message that does not exist, and for a message that becomes too long."""
        if placeholders.has_placeholders(spec.options.message):
            await self._fill_in(principal, spec)

    async def _fill_in(self, principal: Principal, spec: OrderSpec) -> tuple[OrderSpec, tuple[str, ...]]:
        """Fills in the message. For recipients, returns each one's message; for a code batch, returns `spec` with the message."""
        message = spec.options.message or ""
        async with self._database.connection(principal.scope) as connection:
            placeholders.check_placeholders(message, await placeholders.list_placeholders(connection, principal))
            if spec.recipients:
                return spec, await placeholders.fill_in(connection, principal, message, spec.recipients)
        options = msgspec.structs.replace(
            spec.options, message=placeholders.fill_for_nobody(principal, message) or None
        )
        return msgspec.structs.replace(spec, options=options), ()

    async def find_gift(self, caller: Caller, choice: Choice, spec: OrderSpec) -> tuple[Gift, OrderSpec]:
        """Returns the chosen gift with its price, and `spec` completed from the template. Raises InvalidRequest if it cannot be sent."""
        principal = caller.principal
        match choice:
            case ProductChoice():
                snapshot = await self._catalogue.at(caller.catalogue_version)
                return completing.gift_of_product(snapshot, principal, choice), spec
            case CollectionChoice():
                snapshot = await self._catalogue.of(caller)
                return completing.gift_of_collection(snapshot, principal, choice), spec
            case TemplateChoice():
                snapshot = await self._catalogue.of(caller)
                template = await self._template(principal, choice)
                gift = completing.gift_of_template(snapshot, principal, template)
                has_texts = isinstance(choice, TextedTemplateChoice)
                return gift, completing.with_template(spec, template, principal.plan, has_texts=has_texts)

    async def gift_name(self, caller: Caller, gift: Gift) -> str:
        """Returns the name of a gift as the customer sees it; empty if the customer can no longer send it."""
        snapshot = await self._catalogue.of(caller)
        customer_id = caller.principal.customer_id
        product = snapshot.product(gift.product_id or 0, gift.country, customer_id)
        sold = product or snapshot.collection(gift.collection_id or 0, customer_id)
        return "" if sold is None else sold.name

    async def _read_recipients(
        self, principal: Principal, spec: OrderSpec, gift: Gift, given: Sequence[Recipient]
    ) -> tuple[OrderRecipient, ...]:
        """Returns the checked recipients. If that takes long, other checks, which are quick, run first."""
        steps = read_recipients(given, is_lab=_has_lab(principal))
        recipients = first_slice(steps)
        if recipients is None:  # other requests may have run meanwhile
            await asyncio.sleep(0)
            recipients = first_slice(steps)
        if recipients is None:
            await self._check_account(principal, payment_sources.payment_source(spec.account_id), gift.currency)
            await self._check_reference_free(principal, spec.external_reference)
            recipients = await self._finish(principal, steps)
        return recipients

    async def _finish(self, principal: Principal, steps: Steps[Result]) -> Result:
        """Runs a long computation to its end, without a timeout. Other customers do not wait for it."""
        with self._timeouts.suspended():
            return await self._runner.finish(principal.customer_id, steps)

    async def check_account_given(self, principal: Principal, spec: OrderSpec) -> None:
        """Raises InvalidRequest if the request must name a funding account and does not, or must not and does."""
        if payment_sources.is_fitting(payment_sources.payment_source(spec.account_id), principal.funding):
            return
        if payment_sources.names_account(principal.funding):
            await self.check_some_account(principal)
        raise payment_sources.unfitting(principal.funding)

    async def _check_account(self, principal: Principal, source: payment_sources.PaymentSource, currency: str) -> None:
        """Raises InvalidRequest when the caller cannot use the account in that currency, whatever its balance."""
        if not isinstance(source, payment_sources.FromAccount):
            return
        accounts = await self._database.read(principal.scope, list_funding_accounts, principal)
        account = next((account for account in accounts if account.id == source.account_id), None)
        if account is None:
            await self.check_some_account(principal)
            raise InvalidRequest(NO_SUCH_ACCOUNT)
        require_currency(account.currency, currency)

    async def check_some_account(self, principal: Principal) -> None:
        """Raises InvalidRequest when the caller has no account to name."""
        async with self._database.connection(principal.scope) as connection:
            if await list_funding_accounts(connection, principal):
                return
        if principal.user_id is not None:
            raise InvalidRequest(
                "There is no account to name in `account_id`: this customer pays from a topped-up balance, and no funding account in "
                f"{principal.environment} is open to this person."
            )
        raise InvalidRequest(
            "There is no account to name in `account_id`: this customer pays from a topped-up balance, and its service account "
            f"{principal.service_account_name!r} has no funding account in {principal.environment}. "
            "Ask the operator of this service to assign one."
        )

    async def _template(self, principal: Principal, choice: TemplateChoice) -> Template:
        template = await self._database.read(principal.scope, read_template, principal, choice.template_id)
        if template is None:
            raise InvalidRequest("`template_id` names no template of this customer.")
        return template

    async def _check_reference_free(self, principal: Principal, reference: str | None) -> None:
        """Raises ReferenceUsed when an order of the customer has the reference."""
        if reference is None:
            return
        key = (principal.customer_id, principal.environment, reference)
        async with self._database.connection(principal.scope) as connection:
            holder = (await read_references(connection, [key])).get(key)
        if holder is not None:
            raise reference_used(holder)


def _has_lab(principal: Principal) -> bool:
    return principal.environment == "staging"


def _may_be_prepared(request: SendRequest) -> bool:
    """Returns whether a request can be prepared for a remembered caller: it must not depend on the time, or on the customer's own data."""
    return (
        isinstance(request, SendGift)
        and request.send_at is UNSET
        and request.quote is None
        and request.claim_by is None
        and not request.placeholders
        and request.reminder_days is None
    )
