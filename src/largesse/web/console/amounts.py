"""Amounts as people type them."""

from __future__ import annotations

from largesse.base.amounts import UnreadableAmount, read_amount
from largesse.web.console.visit import Visit


def typed_amount(visit: Visit, field: str, currency: str) -> int:
    """Returns what was typed into a field of the form, in minor units; 0, with what is wrong noted, where it is no amount above zero.

    The page that shows the form again says below the field how the amount was understood.
    """
    try:
        amount_minor = read_amount(visit.form[field], currency, visit.language)
    except UnreadableAmount as unreadable:
        visit.form.error(field, visit.say(unreadable.english, **unreadable.values))
        return 0
    visit.understood[field] = visit.language.amount(amount_minor, currency)
    return amount_minor
