"""Operations of recipients on claimed gifts: choose a product, give an address, ask for a mail. Each is one transaction that locks the line.

Also the rules for which products of a collection a recipient may choose.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from enum import Enum, auto

import asyncpg

from largesse.base.confidential import Confidential
from largesse.catalogue.model import Details, Product, can_become, product_from_row
from largesse.catalogue.store import read_details
from largesse.db.pool import Connection, Database, commit_as_one
from largesse.db.scope import LOOKUP, for_customer
from largesse.db.statements import read_now
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.fulfilment.notifications import seal_email
from largesse.fulfilment.shipments import Shipped, correct_address, read_address, read_shipment, request_shipment
from largesse.fulfilment.vouchers import Allocated, Provider, allocate_waiting, read_allocated, settle_product
from largesse.lines.claiming import RecipientSlots
from largesse.lines.states import LineKey, Progress, State, has_left_email, record_email, record_language, record_move
from largesse.lines.store import Line, read_line, read_progress
from largesse.notes.service import read_own_note, write_note


async def read_choices(connection: Connection, line: Line) -> list[Product]:
    """Returns the products that a collection's line may become, in the collection's order."""
    ids: Sequence[int] | None = await connection.fetchval(store.CHOICES, line.collection_id)
    rows = await connection.fetch(store.ACTIVE_PRODUCTS, list(ids or ()))
    by_id = {row["id"]: product_from_row(row) for row in rows}
    products = [by_id[product_id] for product_id in ids or () if product_id in by_id]
    return [
        product
        for product in products
        if can_become(product, line.country, line.currency, line.value_minor, line.customer_id)
    ]


async def read_product(connection: Connection, product_id: int) -> Product:
    """Returns a product, even if it is not sold any more."""
    row = await connection.fetchrow(store.CHOSEN_PRODUCT, product_id)
    assert row is not None, "products are never deleted"
    return product_from_row(row)


class GiftStep(Enum):
    """The step that the page of a claimed gift shows."""

    CHOOSE = auto()
    ADDRESS = auto()
    WAIT = auto()  # the recipient waits for a voucher number
    VOUCHER = auto()
    PARCEL = auto()
    EXPIRED = auto()


# The steps with the form for a thank-you note. Before, the page asks for something else.
THANKFUL = (GiftStep.WAIT, GiftStep.VOUCHER, GiftStep.PARCEL)


class ClaimedGift(Confidential, frozen=True):
    """A claimed gift with everything that its recipient sees. It has no repr, as it contains a voucher and an address."""

    line: Line
    step: GiftStep
    progress: Progress
    product: Product | None
    choices: list[Product]
    details: Mapping[int, Details]  # the texts about the product and the choices, by product id
    voucher: Allocated | None
    shipped: Shipped | None
    address: Mapping[str, str] | None
    has_email: bool
    note: str | None  # the thank-you note that the recipient wrote
    may_thank: bool

    @property
    def may_correct_address(self) -> bool:
        """Whether its parcel came back, and the recipient can correct the address."""
        return (
            self.step is GiftStep.PARCEL
            and self.address is not None
            and self.shipped is not None
            and self.shipped.may_correct
        )


class NotPossible(Exception):
    """The operation is no longer possible for the gift. Its page shows its state."""


class ClaimedGifts:
    """The claimed gifts of one environment, for their recipients."""

    def __init__(
        self, database: Database, vault: Vault, environment: str, provider: Provider, turns: RecipientSlots
    ) -> None:
        self._database = database
        self._vault = vault
        self._environment = environment
        self._provider = provider
        self._turns = turns

    async def settle(self, connection: Connection, line: Line, product_id: int, at: datetime) -> bool:
        """Settles the product of a line that was just claimed. Returns False if it must wait. Then call `serve`."""
        product = await read_product(connection, product_id)
        return await settle_product(connection, self._provider, line, product, at)

    async def serve(self, line: Line, product_id: int) -> None:
        """Allocates new stock to the customer's waiting lines. Call it after the commit of a claim that must wait.

        Leaves it to the worker while a large import is being allocated.
        """
        with suppress(asyncpg.LockNotAvailableError):
            await allocate_waiting(
                lambda: self._database.transaction(line.scope), self._vault, product_id, line.value_minor
            )

    async def read(self, key: LineKey) -> ClaimedGift | None:
        """Returns the claimed gift of a line; None if there is none in this environment."""
        scope = for_customer(key.customer_id, self._environment)
        async with self._turns.looks, self._database.connection(scope) as connection:
            line = await read_line(connection, key, self._environment)
            return None if line is None else await self._read(connection, line)

    async def choose(self, key: LineKey, product_id: int, language: str | None) -> None:
        """Sets the chosen product of the collection, once. Raises NotPossible."""
        async with self._changing(key, GiftStep.CHOOSE, language) as (connection, gift, at):
            product = next((product for product in gift.choices if product.id == product_id), None)
            if product is None:
                raise NotPossible
            has_voucher = await settle_product(connection, self._provider, gift.line, product, at)
        if not has_voucher:
            await self.serve(gift.line, product_id)

    async def deliver_to(
        self, key: LineKey, address: Mapping[str, str], email: str | None, language: str | None
    ) -> None:
        """Requests the parcel to `address`, once. Mails `email` when it leaves. Raises NotPossible."""
        async with self._changing(key, GiftStep.ADDRESS, language) as (connection, gift, at):
            assert gift.product is not None, "an address is asked for once the product is settled"
            await request_shipment(connection, self._vault, gift.line, gift.product.id, address, at)
            if email is not None:
                await record_email(connection, key, seal_email(self._vault, email, key))

    async def correct_address(self, key: LineKey, address: Mapping[str, str]) -> None:
        """Replaces the address of a parcel that came back, until it is packed again. Raises NotPossible."""
        async with self._changing(key, GiftStep.PARCEL, None) as (connection, _, at):
            is_corrected = await correct_address(connection, self._vault, key, address, at)
        if not is_corrected:
            raise NotPossible

    async def tell(self, key: LineKey, email: str, language: str | None) -> None:
        """Mails `email` when the voucher is ready. Raises NotPossible."""
        async with self._changing(key, GiftStep.WAIT, language) as (connection, _, _):
            await record_email(connection, key, seal_email(self._vault, email, key))

    async def thank(self, key: LineKey, note: str) -> None:
        """Saves the recipient's thank-you note, which `read_note` has read, once. Raises NotPossible."""
        scope = for_customer(key.customer_id, self._environment)
        async with self._turns.changes, self._database.transaction(scope) as connection:
            line = await read_line(connection, key, self._environment, lock=True)
            gift = None if line is None else await self._read(connection, line)
            await commit_as_one(connection)
            is_written = (
                gift is not None
                and gift.may_thank
                and await write_note(connection, self._vault, key, self._environment, note)
            )
        if not is_written:
            raise NotPossible

    async def now(self) -> datetime:
        """Returns the database's time."""
        async with self._turns.looks, self._database.connection(LOOKUP) as connection:
            return await read_now(connection)

    @asynccontextmanager
    async def _changing(
        self, key: LineKey, step: GiftStep, language: str | None
    ) -> AsyncIterator[tuple[Connection, ClaimedGift, datetime]]:
        """Opens a transaction with the line locked and its gift at `step`. Raises NotPossible if it is at another.

        Stores `language`, if the recipient chose one: later mail to them is in that language.
        """
        scope = for_customer(key.customer_id, self._environment)
        async with self._turns.changes, self._database.transaction(scope) as connection:
            line = await read_line(connection, key, self._environment, lock=True)
            if line is None:
                raise NotPossible
            gift = await self._read(connection, line)
            if gift is None:
                raise NotPossible
            at = await read_now(connection)
            await commit_as_one(connection)
            if gift.step is GiftStep.EXPIRED and gift.progress.state is not State.EXPIRED:
                await record_move(connection, key, State.EXPIRED, at)
            if gift.step is step:
                if language is not None:
                    await record_language(connection, key, language)
                yield connection, gift, at
        if gift.step is not step:
            raise NotPossible

    async def _read(self, connection: Connection, line: Line) -> ClaimedGift | None:
        progress = await read_progress(connection, line.key)
        if progress.state in {State.ISSUED, State.CANCELLED}:
            return None
        product = await read_product(connection, progress.product_id) if progress.product_id else None
        voucher = await read_allocated(connection, self._vault, line.key)
        shipped = await read_shipment(connection, line.key)
        step = gift_step_of(progress, product, await read_now(connection), has_parcel=shipped is not None)
        choices = await read_choices(connection, line) if step is GiftStep.CHOOSE else []
        may_write, note = await read_own_note(connection, self._vault, line.key)
        told_of = [*choices, product] if product else choices
        return ClaimedGift(
            line=line,
            step=step,
            progress=progress,
            product=product,
            choices=choices,
            details=await read_details(connection, [one.id for one in told_of]),
            voucher=voucher,
            shipped=shipped,
            address=await read_address(connection, self._vault, line.key) if shipped else None,
            has_email=line.has_email or await has_left_email(connection, line.key),
            note=note,
            may_thank=may_write and step in THANKFUL,
        )


def gift_step_of(progress: Progress, product: Product | None, now: datetime, *, has_parcel: bool) -> GiftStep:
    """Returns the step of a claimed gift. Only a recipient who still has something to do can be late."""
    if progress.state is State.FULFILLED and product is not None:
        return GiftStep.VOUCHER if product.is_digital else GiftStep.PARCEL
    if progress.state is State.CHOSEN and product is not None and (product.is_digital or has_parcel):
        return GiftStep.WAIT if product.is_digital else GiftStep.PARCEL
    is_late = progress.expires_at is not None and progress.expires_at <= now
    if progress.state is State.EXPIRED or is_late:
        return GiftStep.EXPIRED
    return GiftStep.ADDRESS if progress.state is State.CHOSEN else GiftStep.CHOOSE
