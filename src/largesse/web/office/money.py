"""Money of customers: top-ups that wait for their transfer, amounts due, margins, and the accounts with their statements, a month at a time."""

from datetime import date
from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base import clock
from largesse.base.errors import NotFound, OperatorError
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Row
from largesse.db.scope import OFFICE
from largesse.ledger.corrections_store import CorrectableAccount, count_waiting, find_correctable
from largesse.ledger.receivables import AmountDue, list_owed, list_payments, settle
from largesse.ledger.statements import read_statement, statement_page
from largesse.ledger.store import list_all_accounts
from largesse.ledger.top_ups import (
    TopUp,
    TransferReferenceError,
    confirm_top_up,
    find_by_references,
    list_waiting_top_ups,
    parse_transfer_reference,
    spelled_reference,
)
from largesse.suppliers.service import list_costs
from largesse.web.console.context import typed_amount
from largesse.web.console.form import Text
from largesse.web.console.funding import month_in_address, send_statement, shown_month
from largesse.web.console.orders import read_day
from largesse.web.console.periods import BEFORE_FIRST
from largesse.web.kit.query import INT64
from largesse.web.office.context import OfficeContext

HERE = "/office/money"
DUE = f"{HERE}/due"
ACCOUNTS = f"{HERE}/accounts"
_SHOWN = 50
_LONGEST_REFERENCE = 100
_MARGIN_DAYS = 30


async def show(context: OfficeContext) -> Response:
    """Lists the top-ups that wait for their transfer, oldest first."""
    async with context.database.connection(OFFICE) as connection:
        top_ups = await list_waiting_top_ups(
            connection, context.query("q"), context.parameters.number("after", INT64), _SHOWN + 1
        )
        to_approve = await count_waiting(connection)
    return context.page(
        "money.html",
        query=context.query,
        top_ups=[(one, spelled_reference(one.reference)) for one in top_ups[:_SHOWN]],
        more=int(top_ups[_SHOWN - 1].reference[2:]) if len(top_ups) > _SHOWN else None,
        to_approve=to_approve,
    )


async def top_up(context: OfficeContext) -> Response:
    """Shows a top-up. Raises NotFound."""
    return await _top_up_page(context, await _find(context))


async def confirm(context: OfficeContext) -> Response:
    """Credits the account of a top-up with the amount that arrived. If that is not the requested one, asks once more. Raises NotFound."""
    found = await _find(context)
    context.form.text("amount", 40)
    amount_minor = 0 if context.form.errors else typed_amount(context, "amount", found.currency)
    if context.form.errors:
        return await _top_up_page(context, found)
    if amount_minor != found.amount_minor and context.form.number("other", INT64) != amount_minor:
        requested, came = (context.language.amount(one, found.currency) for one in (found.amount_minor, amount_minor))
        said = context.say(
            "%(requested)s was requested. If %(came)s came, press the button again.", requested=requested, came=came
        )
        context.form.error("amount", said)
        return await _top_up_page(context, found, other_minor=amount_minor)
    try:
        done = await confirm_top_up(context.actor, found.reference, amount_minor)
    except OperatorError:
        # It was cancelled, or confirmed with another amount. The page shows its state.
        context.form.error("amount", context.say("The top-up was decided meanwhile, or its account is closed."))
        return await _top_up_page(context, await _find(context))
    assert done.credited_minor is not None, "it is confirmed"
    amount = context.language.amount(done.credited_minor, done.currency)
    return context.see(HERE, context.say("%(amount)s credited to %(account)s.", amount=amount, account=done.account))


async def _find(context: OfficeContext) -> TopUp:
    try:
        reference = parse_transfer_reference(context.request.path_params["reference"])
    except TransferReferenceError:
        raise NotFound("There is no such top-up.") from None
    found = await context.read(find_by_references, [reference])
    if reference not in found:
        raise NotFound("There is no such top-up.")
    return found[reference][0]


async def _top_up_page(context: OfficeContext, found: TopUp, *, other_minor: int | None = None) -> Response:
    return context.page(
        "money_top_up.html",
        top_up=found,
        spelled=spelled_reference(found.reference),
        typed=context.language.typed(found.amount_minor, found.currency),
        other_minor=other_minor,
        may_change=context.person.may(StaffRight.MONEY) and found.state in {"waiting", "expired"},
    )


async def due(context: OfficeContext) -> Response:
    """Lists the amounts that invoiced customers owe."""
    owed = await context.read(list_owed, context.parameters.number("after"), _SHOWN + 1)
    more = owed[_SHOWN - 1].account_id if len(owed) > _SHOWN else None
    return context.page("money_due.html", owed=owed[:_SHOWN], more=more)


async def due_one(context: OfficeContext) -> Response:
    """Shows the amount that a customer owes, and its payments. Raises NotFound."""
    return await _due_page(context, await _receivable(context))


class PaymentForm(msgspec.Struct):
    """A payment that arrived."""

    amount: Annotated[str, Text(40)]
    reference: Annotated[str, Text(_LONGEST_REFERENCE)]


async def pay(context: OfficeContext) -> Response:
    """Records a payment of an invoiced customer. Raises NotFound."""
    account = await _receivable(context)
    form = context.form.read(PaymentForm)
    amount_minor = 0 if "amount" in context.form.errors else typed_amount(context, "amount", account.currency)
    if context.form.errors:
        return await _due_page(context, account)
    actor = context.actor.on_behalf_of(account.customer_id, account.environment)
    try:
        credit = await settle(actor, currency=account.currency, amount_minor=amount_minor, reference=form.reference)
    except OperatorError:
        account = await _receivable(context)
        owed_minor = max(0, -account.balance_minor)
        if amount_minor > owed_minor:
            owed = context.language.amount(owed_minor, account.currency)
            context.form.error("amount", context.say("At most %(owed)s is due.", owed=owed))
        else:
            said = context.say("A payment with this reference has another amount, or less is due by now.")
            context.form.error("reference", said)
        return await _due_page(context, account)
    said = context.say("Payment recorded.") if credit.is_new else context.say("This payment was recorded before.")
    return context.see(f"{DUE}/{account.account_id}", said)


async def _receivable(context: OfficeContext) -> CorrectableAccount:
    account = await context.read(find_correctable, context.number("account"))
    if account.kind != "receivable":
        raise NotFound("There is no such amount due.")
    return account


async def _due_page(context: OfficeContext, account: CorrectableAccount) -> Response:
    owed = AmountDue(account.account_id, account.currency, -account.balance_minor)
    payments = await context.read(list_payments, account.customer_id, owed)
    return context.page(
        "money_due_one.html",
        account=account,
        owed=owed,
        payments=payments[:_SHOWN],
        may_change=context.person.may(StaffRight.MONEY),
    )


async def margins(context: OfficeContext) -> Response:
    """Shows the cost and the margin of gifts from suppliers, by supplier and gift."""
    today = clock.now().date()
    until = read_day(context, "until") or today
    since = read_day(context, "since") or date.fromordinal(max(1, until.toordinal() - _MARGIN_DAYS))
    if since > until:
        context.form.error("until", context.say(BEFORE_FIRST))
    rows = await _costs(context, since, until) if since <= until else []
    return context.page("money_margins.html", status=200, rows=rows, since=since, until=until)


async def _costs(context: OfficeContext, since: date, until: date) -> list[tuple[Row, int | None, str]]:
    """Returns the costs, each with the margin in minor units and in percent; None and empty if value and cost have different currencies."""
    rows = await context.read(list_costs, since, until)
    found: list[tuple[Row, int | None, str]] = []
    for row in rows:
        margin, percent = None, ""
        if row["currency"] == row["value_currency"]:
            margin = row["value_minor"] - row["cost_minor"]
            percent = context.language.percent(margin / row["value_minor"], 1) if row["value_minor"] else ""
        found.append((row, margin, percent))
    return found


async def accounts(context: OfficeContext) -> Response:
    """Lists funding accounts: all, or those with the searched words in the name of the company or the account."""
    found = await context.read(
        list_all_accounts, context.query("q").strip(), context.parameters.number("after") or 0, _SHOWN + 1
    )
    more = found[_SHOWN - 1].id if len(found) > _SHOWN else None
    return context.page("accounts.html", query=context.query, accounts=found[:_SHOWN], more=more)


async def account_statement(context: OfficeContext) -> Response:
    """Shows a month of an account, oldest entries first, a page at a time. Raises NotFound."""
    since, until = month_in_address(context)
    async with context.database.snapshot(OFFICE) as connection:
        account = await find_correctable(connection, context.number("account"))
        statement = await read_statement(connection, account.customer_id, account.account_id, since, until)
        entries = await statement_page(connection, statement, context.parameters.number("after", INT64), _SHOWN + 1)
    return context.page(
        "account_statement.html",
        account=account,
        statement=statement,
        **shown_month(context, entries, _SHOWN),
        may_change=context.person.may(StaffRight.MONEY),
    )


async def download_statement(context: OfficeContext) -> Response:
    """Sends a whole month of an account as a CSV file. Raises NotFound."""
    since, until = month_in_address(context)
    async with context.database.connection(OFFICE) as connection:
        account = await find_correctable(connection, context.number("account"))
        statement = await read_statement(connection, account.customer_id, account.account_id, since, until)
    name = f"{account.customer} {account.account or account.kind}"
    return await send_statement(context, name, OFFICE, statement, account.currency)
