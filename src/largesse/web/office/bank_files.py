"""Bank files: uploading one, the page of its lines, confirming those that match a top-up, and deciding the others one by one."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from largesse.base.amounts import is_shared_sign, is_sign
from largesse.base.errors import FileRefused, OperatorError
from largesse.base.i18n.languages import text
from largesse.catalogue.store import list_currencies
from largesse.customers.staff_roles import StaffRight
from largesse.ledger import bank_files
from largesse.ledger.bank_file import Columns
from largesse.ledger.bank_files import LineState
from largesse.ledger.payments import Why
from largesse.ledger.top_ups import spelled_reference
from largesse.web.console.form import Choice, Text
from largesse.web.office.context import OfficeContext, refused, uploaded

HERE = "/office/money/bank-files"
SHOWN = 50
_NO_HEADING = text(
    "No line is a heading with an amount and a currency. Name the columns or the file's currency below. If that does not help, the format of this bank is not supported."
)
_SHARED_SIGN = text(
    "“%(found)s” can mean several currencies. Read the file again with the code of its currency, such as USD."
)
_DECIDED = text("There is nothing to decide about this line any more.")
_WHY: Mapping[str, str] = {
    "no_reference": text("It names no reference of a top-up."),
    "no_payment": text("It is not an incoming payment."),
    "unknown": text("There is no top-up %(reference)s."),
    "mistyped": text("It names %(reference)s. The top-up beside it differs in one digit, and waits for this amount."),
    "several": text("It names several top-ups: %(references)s."),
    "other_currency": text("It is in another currency than the account: %(currency)s."),
    "shared_sign": _SHARED_SIGN,
    "no_amount": text("Its amount cannot be read. Choose the sign before decimals."),
    "confirmed": text("The top-up is confirmed already. It may have been paid twice."),
    "cancelled": text("The top-up was cancelled."),
    "expired": text("The top-up expired on %(at)s."),
    "other_amount": text("%(came)s arrived, but %(asked)s was requested."),
    "reversed": text("Another line of this file takes the payment back."),
    "credit_reversed": text(
        "The top-up is credited, and this may take its money back. If so, propose a debit on the page of the account."
    ),
    "ended": text("The top-up was decided meanwhile, or its account is closed."),
}
_STATES: Mapping[LineState, tuple[str, str]] = {
    LineState.DECIDE: ("bad", text("To decide")),
    LineState.MATCHED: ("still", text("Matched")),
    LineState.DONE: ("good", text("Credited")),
    LineState.DISMISSED: ("still", text("Dismissed")),
    LineState.IGNORED: ("still", text("Ignored")),
}


async def show(context: OfficeContext) -> Response:
    """Lists the files, newest first, and shows the form that uploads one."""
    files = await context.read(bank_files.list_files, context.parameters.number("before"), SHOWN + 1)
    return context.page(
        "bank_files.html",
        files=files[:SHOWN],
        more=files[SHOWN - 1].id if len(files) > SHOWN else None,
        most=bank_files.MOST_LINES,
        may_change=context.person.may(StaffRight.MONEY),
    )


class FileForm(msgspec.Struct):
    """How to read a file. An empty field leaves that to the reader."""

    amount_column: Annotated[str, Text(100, required=False)]
    currency_column: Annotated[str, Text(100, required=False)]
    currency: Annotated[str, Text(3, required=False)]
    decimals: Annotated[str, Choice(("", ".", ","))]


async def read(context: OfficeContext) -> Response:
    """Reads a file, and shows it."""
    form, content = context.form.read(FileForm), uploaded(context, bank_files.MOST_BYTES)
    if content is None or context.form.errors:
        return await show(context)
    all_in = await _currency(context, form.currency)
    if context.form.errors:
        return await show(context)
    columns = Columns(form.amount_column or None, form.currency_column or None, all_in)
    name = context.file_names.get("file", "") or "file"
    try:
        file_id, is_new = await bank_files.read_file(context.actor, name, content, columns, form.decimals or None)
    except FileRefused as refusal:
        is_heading = refusal.code == "no_heading"
        context.form.error("file", context.say(_NO_HEADING) if is_heading else refused(context, refusal))
        return await show(context)
    said = None if is_new else context.say("This file was read before. Nothing has changed.")
    return context.see(f"{HERE}/{file_id}", said)


async def _currency(context: OfficeContext, typed: str) -> str | None:
    """Returns the currency in use whose code or sign was typed; None if nothing was, or with an error."""
    if not typed:
        return None
    if is_shared_sign(typed):
        context.form.error("currency", context.say(_SHARED_SIGN, found=typed))
        return None
    found = [one for one in await context.read(list_currencies) if is_sign(typed, one)]
    if len(found) != 1:
        context.form.error("currency", context.say("%(what)s is not a currency in use.", what=typed))
        return None
    return found[0]


async def one(context: OfficeContext) -> Response:
    """Shows a file with its lines, starting with those to decide. Raises NotFound."""
    file, lines = await bank_files.review_file(context.actor, context.number("file"))
    order = list(LineState)
    lines.sort(key=lambda one: (order.index(one.state), one.match.line))
    counts = {state: sum(one.state is state for one in lines) for state in LineState}
    page = context.parameters.number("page") or 0
    return context.page(
        "bank_file.html",
        file=file,
        counts=[(context.say(_STATES[state][1]), count) for state, count in counts.items() if count],
        matched=counts[LineState.MATCHED],
        lines=[
            (
                one,
                _STATES[one.state][0],
                context.say(_STATES[one.state][1]),
                "" if one.match.why is None else _why(context, one.match.why),
                spelled_reference(one.match.reference) if one.match.reference else "",
            )
            for one in lines[page * SHOWN : (page + 1) * SHOWN]
        ],
        more=page + 1 if len(lines) > (page + 1) * SHOWN else None,
        fewer=page - 1 if page else None,
        at=f"?page={page}" if page else "",
        may_change=context.person.may(StaffRight.MONEY),
    )


async def confirm(context: OfficeContext) -> Response:
    """Confirms the top-ups that the lines of a file match. Raises NotFound."""
    file_id = context.number("file")
    with context.services.timeouts.suspended():  # no timeout, because each line is a transaction
        done = await bank_files.confirm_file(context.actor, file_id)
    said = context.ngettext("%(count)s top-up credited.", "%(count)s top-ups credited.", done.confirmed)
    return context.see(f"{HERE}/{file_id}", said)


async def credit(context: OfficeContext) -> Response:
    """Credits the top-up of a line with the line's amount. Raises NotFound."""
    try:
        done = await bank_files.credit_line(context.actor, context.number("file"), context.number("line"))
    except bank_files.NothingToDecide:
        return _back(context, context.say(_DECIDED))
    except OperatorError:
        return _back(context, context.say("The top-up was decided meanwhile, or its account is closed."))
    assert done.credited_minor is not None, "it is confirmed"
    amount = context.language.amount(done.credited_minor, done.currency)
    return _back(context, context.say("%(amount)s credited to %(account)s.", amount=amount, account=done.account))


async def dismiss(context: OfficeContext) -> Response:
    """Dismisses a line, which then confirms no top-up. Raises NotFound."""
    try:
        await bank_files.dismiss_line(context.actor, context.number("file"), context.number("line"))
    except bank_files.NothingToDecide:
        return _back(context, context.say(_DECIDED))
    return _back(context, context.say("Line dismissed."))


def _back(context: OfficeContext, said: str) -> Response:
    """Redirects to the page of the list on which the line was decided."""
    page = context.parameters.number("page")
    return context.see(f"{HERE}/{context.number('file')}" + (f"?page={page}" if page else ""), said)


def _why(context: OfficeContext, why: Why) -> str:
    values: dict[str, Any] = {
        name: context.language.short_day(value.astimezone(context.zone), with_year=True)
        if isinstance(value, datetime)
        else value
        for name, value in why.values.items()
    }
    if "came_minor" in values:
        for name in ("came", "asked"):
            values[name] = context.language.amount(values[f"{name}_minor"], values["currency"])
    return context.say(_WHY[why.code], **values)
