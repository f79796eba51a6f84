"""The field of a form that chooses a template, and its checks: the gift can be sent, the message is complete, and the account has its currency."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.base.errors import InvalidRequest
from largesse.base.i18n.templates import text
from largesse.ledger.store import FundingAccount, list_funding_accounts
from largesse.orders.placeholders import unknown_placeholders
from largesse.orders.request import TemplateChoice, read_send, send_request
from largesse.templates.store import Template
from largesse.web.console.context import RequestContext
from largesse.web.console.send.message import placeholders
from largesse.web.console.send.opening import person_as_caller

_GONE = text("The gift of this template cannot be sent any more. Choose another template.")
_UNKNOWN = text(
    "The message of this template has placeholders that do not exist: %(placeholders)s. Change the template first."
)
_CURRENCY = text("The gift costs %(currency)s. Choose an account in that currency.")


def named(context: RequestContext, template: Template) -> str:
    """Returns the label of a template: its name and the value of its gift."""
    return f"{template.name or template.gift_name} ({context.language.amount(template.value_minor, template.currency)})"


def offered(
    context: RequestContext, templates: Sequence[Template], accounts: Sequence[FundingAccount]
) -> list[tuple[str, str]]:
    """Returns the options of the field, starting with templates in the currency of the first account, which is preselected."""
    first = accounts[0].currency if accounts else None
    in_order = sorted(templates, key=lambda one: first is not None and one.currency != first)
    return [(str(one.id), named(context, one)) for one in in_order]


async def check_template(context: RequestContext) -> None:
    """Adds errors to the form, beside the template and the account, if the template's gift cannot be sent."""
    form, caller = context.form, await person_as_caller(context)
    choice = TemplateChoice(form.number("template") or 0)
    spec = read_send(send_request(choice, None, code_quantity=1), caller.principal, caller.now)
    try:
        gift, spec = await context.services.orders.find_gift(caller, choice, spec)
    except InvalidRequest:
        form.error("template", context.say(_GONE))
        return
    known = [name for name, _ in await placeholders(context)]
    if unknown := unknown_placeholders(spec.options.message or "", known):
        form.error("template", context.say(_UNKNOWN, placeholders=", ".join(unknown)))
    async with context.database.connection(caller.principal.scope) as connection:
        accounts = await list_funding_accounts(connection, caller.principal)
    chosen = next((one for one in accounts if one.id == form.number("account")), None)
    if chosen is not None and chosen.currency != gift.currency:
        form.error("account", context.say(_CURRENCY, currency=gift.currency))
