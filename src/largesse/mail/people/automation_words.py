"""Why a gift of an automation was not sent, in words: for mail and for the automation's page."""

import re
from collections.abc import Callable
from pathlib import Path

from largesse.base.i18n.languages import Language, text

CATALOGUES = Path(__file__).parent / "locale"
GONE = text("The gift of this template is gone, or has another price now. Save the template again, or choose another.")
MOST_FOR_A_GIFT = text("The budget %(name)s allows at most %(most)s for a gift.")
# The reasons are those of `automations.model`.
_REASONS = {
    "person": text("By somebody in your company."),
    "paused": text("The automation was paused."),
    "cap": text("The monthly limit of gifts was reached."),
    "left": text("The contact left or was deleted."),
    "changed": text("The day or the group of the contact changed."),
    "again": text("The contact has had a gift from this automation this year, or within half a year."),
    "not_approved": text("It waits for approval."),
    "balance": text("The account's balance was too low."),
}
# How the API's errors of an order begin, and a text that the people who set automations understand.
_REFUSALS = {
    "`template_id`": GONE,
    "`account_id`": text("The account cannot pay for this gift. Choose another account."),
    "This person": text("The person it sends as may not send any more. Change the automation, and it sends as you."),
}
_OF_BUDGET = re.compile(r"(budget|per_gift):([A-Z]{3}):([0-9]+):(.*)", re.DOTALL)


def why(reason: str, say: Callable[..., str], language: Language, is_failed: bool) -> str:
    """Returns why a gift was not sent, in a language. `say` translates a text into it and fills in its values."""
    if reason == "not_approved" and is_failed:
        return say(text("Nobody approved the automation in time."))
    if reason in _REASONS:
        return say(_REASONS[reason])
    kind, _, rules = reason.partition(":")
    if kind == "approval" and rules:
        rule = text("The approval rule %(rules)s asks for an approval that the automation does not have.")
        return say(rule, rules=rules)
    found = _OF_BUDGET.fullmatch(reason)
    if found is None:
        return next((say(said) for begins, said in _REFUSALS.items() if reason.startswith(begins)), reason)
    kind, currency, minor, name = found.groups()
    amount = language.amount(int(minor), currency)
    if kind == "per_gift":
        return say(MOST_FOR_A_GIFT, name=name, most=amount)
    return say(text("The budget %(name)s had %(left)s left."), name=name, left=amount)
