"""The desk: reads who a draft is for, says what it would cost, and has it placed, once."""

from __future__ import annotations

from collections.abc import Callable

import asyncpg
import msgspec

from largesse.base.cooperative import CooperativeRunner, Result, Steps
from largesse.base.errors import InvalidRequest, NotFound, ReferenceUsed
from largesse.base.timeouts import Timeouts
from largesse.customers.authenticator import Caller
from largesse.customers.principal import Principal
from largesse.db.pool import Database
from largesse.drafts.checking import Checked, check_rows
from largesse.drafts.columns import Columns
from largesse.drafts.model import Draft
from largesse.drafts.sheet import Sheet
from largesse.drafts.store import drop_draft, read_draft, read_sheet
from largesse.drafts.text_sheet import read_text_sheet
from largesse.drafts.workbook import Workbooks, is_workbook
from largesse.orders.faults import RequestFaults
from largesse.orders.options import Options
from largesse.orders.order import Gift, Order
from largesse.orders.quoter import Quote, Quoter
from largesse.orders.request import read_send
from largesse.orders.service import OrderService

_NOBODY = Checked((), ())


class Placed(msgspec.Struct, frozen=True):
    """The order that a draft has become."""

    reference: str
    is_new: bool  # whether this attempt has placed it, and none before


class DraftService:
    """Does with drafts what takes the rest of the house."""

    def __init__(self, database: Database, intake: OrderService, quoter: Quoter, patience: Timeouts) -> None:
        self._database = database
        self._intake = intake
        self._quoter = quoter
        self._workbooks = Workbooks()
        self._slices = CooperativeRunner()
        self._patience = patience

    async def read_file(self, principal: Principal, data: bytes) -> Sheet:
        """The sheet of a CSV or XLSX file, or of cells that were pasted. Raises SheetRefused, and SeveralSheets for a workbook of several."""
        if is_workbook(data):
            return await self._workbooks.read(principal.customer_id, data)
        return await self._finish(principal, read_text_sheet(data))

    async def check(self, principal: Principal, sheet: Sheet, columns: Columns) -> Checked:
        """The rows of a sheet, held to the rules of an order."""
        return await self._finish(principal, check_rows(sheet, columns))

    async def _finish(self, principal: Principal, steps: Steps[Result]) -> Result:
        """What `steps` come to, in the customer's turn; how long that takes is nobody's fault but theirs."""
        with self._patience.suspended():
            return await self._slices.finish(principal.customer_id, steps)

    async def recipients(self, principal: Principal, draft: Draft) -> Checked:
        """Who the draft is for, as it stands; nobody where that has not been said, or it is for anonymous codes."""
        columns = draft.content.columns
        if columns is None or draft.content.code_quantity is not None:
            return _NOBODY
        async with self._database.connection(principal.scope) as connection:
            sheet = await read_sheet(connection, principal, draft.id)
        return await self.check(principal, sheet, columns) if sheet.rows else _NOBODY

    async def gift(self, caller: Caller, draft: Draft) -> tuple[Gift, Options]:
        """What the draft sends, priced, and its texts with those of its template. Its gift must be chosen.

        Raises InvalidRequest for what cannot be sent.
        """
        asked = msgspec.structs.replace(draft.asked(()), code_quantity=1, send_at=None, external_reference=None)
        wanted = read_send(asked, plan=caller.principal.plan, now=caller.now)
        gift, wanted = await self._intake.find_gift(caller, asked.choice, wanted)
        return gift, wanted.options

    async def quote(self, caller: Caller, draft: Draft, checked: Checked) -> Quote:
        """What sending the draft would cost. Its gift must be chosen.

        Raises what placing it would, with all else that is wrong in its `errors`.
        """
        return await self._quoter.quote(caller, draft.asked(checked.recipients), RequestFaults())

    async def send(
        self, caller: Caller, draft_id: str, quote: str | None, *, check: Callable[[Order], None] | None = None
    ) -> Placed:
        """Places the order of the person's draft as it was quoted, and drops the draft; a repeat finds what the first has placed.

        `check` sees the order before it is placed, and may raise something instead.

        Raises NotFound for a draft that is not there and has become no order, and what `OrderService.send` does.
        """
        principal = caller.principal
        try:
            async with self._database.connection(principal.scope) as connection:
                draft = await read_draft(connection, principal, draft_id)
        except NotFound:
            return await self._placed_before(principal, draft_id)
        checked = await self.recipients(principal, draft)
        self._require_whole(draft, checked)
        try:
            await self._intake.send(caller, draft.asked(checked.recipients, quote), check=check)
        except ReferenceUsed as used:
            if used.holder != draft.id:
                raise
            return await self._placed_before(principal, draft_id)
        except asyncpg.UniqueViolationError:  # under another reference of the caller's, at the same time
            return await self._placed_before(principal, draft_id)
        async with self._database.connection(principal.scope) as connection:
            await drop_draft(connection, principal, draft_id)
        return Placed(draft.id, is_new=True)

    def _require_whole(self, draft: Draft, checked: Checked) -> None:
        """Raises InvalidRequest for a draft that lacks its gift, or has rows that are wrong."""
        if draft.content.choice is None:
            raise InvalidRequest("`product_id` is required: no gift has been chosen.")
        if checked.bad:
            raise InvalidRequest(f"`recipients` has {len(checked.bad)} rows that are wrong.")

    async def _placed_before(self, principal: Principal, draft_id: str) -> Placed:
        """The order that the person's draft of that id has become. Raises NotFound."""
        async with self._database.connection(principal.scope) as connection:
            reference = await connection.fetchval(
                "SELECT reference FROM orders "
                "WHERE reference = $1 AND customer_id = $2 AND environment = $3 AND user_id = $4",
                draft_id,
                principal.customer_id,
                principal.environment,
                principal.user_id,
            )
        if reference is None:
            raise NotFound("There is no draft of that reference.")
        return Placed(reference, is_new=False)
