"""Drafts: reads the recipients of a draft, quotes it, changes it, and places its order once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import asyncpg
import msgspec

from largesse.base.cooperative import CooperativeRunner, Result, Steps
from largesse.base.errors import InvalidRequest, NotFound, ReferenceUsed
from largesse.base.timeouts import Timeouts
from largesse.customers.actor import Actor
from largesse.customers.authenticator import Caller
from largesse.customers.principal import Principal
from largesse.customers.roles import Right
from largesse.db.pool import Connection, Database
from largesse.drafts import store
from largesse.drafts.checking import Checked, check_rows
from largesse.drafts.columns import Columns, as_labelled, fits, guess_columns, heading_key
from largesse.drafts.mending import mended_sheet, merged_sheet
from largesse.drafts.model import Draft, DraftContent
from largesse.drafts.sheet import Sheet, SheetRefused
from largesse.drafts.text_sheet import read_text_sheet
from largesse.drafts.workbook import Workbooks, is_workbook
from largesse.orders.options import Options
from largesse.orders.order import Gift, Order
from largesse.orders.quoter import Quote, Quoter, RequestFaults
from largesse.orders.request import read_send
from largesse.orders.service import OrderService

_NO_ROWS = Sheet([])


class Placed(msgspec.Struct, frozen=True):
    """The order that a draft became."""

    reference: str
    is_new: bool  # whether this call placed it, not an earlier one


class DraftService:
    """The operations on drafts. What changes a draft raises NotFound if the person has no draft of that id."""

    def __init__(self, database: Database, orders: OrderService, quoter: Quoter, timeouts: Timeouts) -> None:
        self._database = database
        self._orders = orders
        self._quoter = quoter
        self._workbooks = Workbooks()
        self._runner = CooperativeRunner()
        self._timeouts = timeouts

    # Changes

    async def begin(self, actor: Actor, now: datetime, content: DraftContent) -> Draft:
        """Returns a new draft of that content."""
        async with actor.transaction(Right.SEND) as transaction:
            return await store.begin_draft(transaction.connection, actor, now, content)

    async def change(self, actor: Actor, draft_id: str, **fields: object) -> None:
        """Replaces these fields of the draft's content. What another page changed meanwhile stays."""
        async with _changing(actor, draft_id, fields):
            pass

    async def drop(self, actor: Actor, draft_id: str) -> None:
        """Deletes the draft, if it is still there."""
        async with actor.transaction(Right.SEND) as transaction:
            await store.drop_draft(transaction.connection, actor, draft_id)

    async def set_sheet(self, actor: Actor, draft_id: str, sheet: Sheet, columns: Columns) -> None:
        """Makes the rows of a sheet the recipients of the draft."""
        await self._set_recipients(actor, draft_id, sheet, code_quantity=None, columns=columns)

    async def set_quantity(self, actor: Actor, draft_id: str, code_quantity: int | None) -> None:
        """Makes it a draft of anonymous codes. None removes the recipients, so that they can be entered again."""
        await self._set_recipients(actor, draft_id, _NO_ROWS, code_quantity=code_quantity, columns=None)

    async def set_columns(self, actor: Actor, draft_id: str, sheet: Sheet, columns: Columns) -> None:
        """Sets which column of the draft's sheet is what, and remembers it for files with the same headings."""
        async with _changing(actor, draft_id, {"columns": columns}) as connection:
            await store.remember_columns(connection, actor, heading_key(sheet, columns), columns)

    async def take_file(
        self, actor: Actor, principal: Principal, draft: Draft, data: bytes, *, is_typed: bool, adds: bool
    ) -> None:
        """Reads the recipients from a CSV or XLSX file, or from cells that were typed or pasted.

        With `adds` they follow the valid rows that the draft has, otherwise they replace them.

        Raises SheetRefused, and SeveralSheets for a workbook with several sheets.
        """
        sheet = await self.read_file(principal, data)
        columns = guess_columns(sheet)
        if columns.has_heading and len(sheet.rows) == 1:
            raise SheetRefused("headings")
        async with self._database.connection(principal.scope) as connection:
            known = await store.remembered_columns(connection, principal, heading_key(sheet, columns))
        columns = known if known is not None and fits(known, sheet) else columns
        columns = as_labelled(sheet, columns) if is_typed else columns
        if adds:
            valid = await self.recipients(principal, draft)
            sheet, columns = merged_sheet(valid, await self.check(principal, sheet, columns))
        await self.set_sheet(actor, draft.id, sheet, columns)

    async def mend(self, actor: Actor, principal: Principal, draft: Draft, typed: Mapping[int, Sequence[str]]) -> None:
        """Replaces address, name and quantity of the rows of these numbers. Raises SheetRefused."""
        if draft.content.columns is not None:
            sheet = await self.sheet(principal, draft)
            await self.set_sheet(
                actor, draft.id, mended_sheet(sheet, draft.content.columns, typed), draft.content.columns
            )

    async def drop_invalid(self, actor: Actor, principal: Principal, draft: Draft) -> None:
        """Deletes the rows that are not valid."""
        if draft.content.columns is not None:
            sheet = await self.sheet(principal, draft)
            checked = await self.check(principal, sheet, draft.content.columns)
            valid = sheet.without({row.number for row in checked.bad})
            await self.set_sheet(actor, draft.id, valid, draft.content.columns)

    async def _set_recipients(self, actor: Actor, draft_id: str, sheet: Sheet, **fields: object) -> None:
        async with _changing(actor, draft_id, fields) as connection:
            await store.save_sheet(connection, actor, draft_id, sheet)

    # Recipients

    async def read_file(self, principal: Principal, data: bytes) -> Sheet:
        """Returns the sheet of a CSV or XLSX file, or of pasted cells. Raises SheetRefused and SeveralSheets."""
        if is_workbook(data):
            return await self._workbooks.read(principal.customer_id, data)
        return await self._finish(principal, read_text_sheet(data))

    async def check(self, principal: Principal, sheet: Sheet, columns: Columns) -> Checked:
        """Checks the rows of a sheet by the rules of an order."""
        return await self._finish(principal, check_rows(sheet, columns))

    async def sheet(self, principal: Principal, draft: Draft) -> Sheet:
        """Returns the rows of a draft."""
        async with self._database.connection(principal.scope) as connection:
            return await store.read_sheet(connection, principal, draft.id)

    async def recipients(self, principal: Principal, draft: Draft) -> Checked:
        """Returns the checked rows of the draft. It has none before they are entered, or if it is for anonymous codes."""
        columns = draft.content.columns
        if columns is None or draft.content.code_quantity is not None:
            return Checked((), ())
        return await self.check(principal, await self.sheet(principal, draft), columns)

    async def _finish(self, principal: Principal, steps: Steps[Result]) -> Result:
        """Runs `steps` in the customer's turn. The time this takes depends on their file, so no timeout applies."""
        with self._timeouts.suspended():
            return await self._runner.finish(principal.customer_id, steps)

    # Price and order

    async def gift(self, caller: Caller, draft: Draft) -> tuple[Gift, Options]:
        """Returns what the draft sends, priced, and its texts completed from its template. Its gift must be chosen.

        Raises InvalidRequest if it cannot be sent.
        """
        request = msgspec.structs.replace(draft.to_request(()), code_quantity=1, external_reference=None)
        spec = read_send(request, caller.principal, caller.now)
        gift, spec = await self._orders.find_gift(caller, request.choice, spec)
        return gift, spec.options

    async def quote(self, caller: Caller, draft: Draft, checked: Checked) -> Quote:
        """Returns what sending the draft would cost. Its gift must be chosen.

        Raises what placing it would raise, with all that is wrong in `errors`.
        """
        return await self._quoter.quote(caller, draft.to_request(checked.recipients), RequestFaults())

    async def send(
        self, caller: Caller, draft_id: str, quote: str | None, *, check: Callable[[Order], None] | None = None
    ) -> Placed:
        """Places the order of the person's draft as quoted, and deletes the draft. A repeat returns the order of the first call.

        `check` gets the order before it is placed, and may raise.

        Raises NotFound if there is no such draft and no order of it, InvalidRequest if it lacks its gift or has rows that
        are not valid, and what `OrderService.send` raises.
        """
        principal = caller.principal
        try:
            async with self._database.connection(principal.scope) as connection:
                draft = await store.read_draft(connection, principal, draft_id)
        except NotFound:
            return await self._placed_before(principal, draft_id)
        checked = await self.recipients(principal, draft)
        if draft.content.choice is None:
            raise InvalidRequest("`product_id` is required: no gift has been chosen.")
        if checked.bad:
            raise InvalidRequest(f"`recipients` has {len(checked.bad)} rows that are wrong.")
        try:
            request = draft.to_request(checked.recipients, quote)
            await self._orders.send(caller, request, reference=draft.id, check=check)
        except ReferenceUsed as used:
            if used.holder != draft.id:
                raise
            return await self._placed_before(principal, draft_id)
        except asyncpg.UniqueViolationError:  # placed at the same time under another reference of the caller
            return await self._placed_before(principal, draft_id)
        async with self._database.connection(principal.scope) as connection:
            await store.drop_draft(connection, principal, draft_id)
        return Placed(draft.id, is_new=True)

    async def _placed_before(self, principal: Principal, draft_id: str) -> Placed:
        """Returns the order that the person's draft became. Raises NotFound."""
        async with self._database.connection(principal.scope) as connection:
            reference = await store.find_placed(connection, principal, draft_id)
        if reference is None:
            raise NotFound("There is no draft of that reference.")
        return Placed(reference, is_new=False)


@asynccontextmanager
async def _changing(actor: Actor, draft_id: str, fields: Mapping[str, object]) -> AsyncIterator[Connection]:
    """Opens a transaction in which the draft is locked and these fields of its content are replaced. Raises NotFound."""
    async with actor.transaction(Right.SEND) as transaction:
        connection = transaction.connection
        draft = await store.read_draft(connection, actor, draft_id, lock=True)
        await store.save_draft(connection, actor, draft_id, msgspec.structs.replace(draft.content, **fields))
        yield connection
