"""Amounts as people type them."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from largesse.base.i18n import text
from largesse.base.money import AmountError, to_minor
from largesse.web.console.visit import Visit

_NO_AMOUNT = text("Type an amount, such as 500 or 500.00.")
_TOO_FINE = text("This is no amount of %(currency)s.")


def typed_amount(visit: Visit, field: str, currency: str) -> int:
    """What was typed into a field of the form, in minor units; noted as wrong, and 0, where it is no amount above zero."""
    typed = "".join(visit.form[field].split())
    try:
        # One comma or point is the decimal sign; whoever parts thousands is asked to leave that out.
        amount = Decimal(typed.replace(",", "."))
        amount_minor = to_minor(amount, currency)
    except AmountError:
        visit.form.error(field, visit.say(_TOO_FINE, currency=currency))
        return 0
    except InvalidOperation:
        visit.form.error(field, visit.say(_NO_AMOUNT))
        return 0
    if amount_minor <= 0:
        visit.form.error(field, visit.say(_NO_AMOUNT))
        return 0
    return amount_minor
