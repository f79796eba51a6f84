"""Why a gift of an automation was not sent, in words."""

import re

from largesse.automations.model import APPROVAL, BUDGET, FAILED, NOT_APPROVED, PER_GIFT
from largesse.base.i18n.languages import text
from largesse.db.pool import Row
from largesse.web.console.context import RequestContext

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
    "`template_id`": text(
        "The gift of this template is gone, or has another price now. Save the template again, or choose another."
    ),
    "`account_id`": text("The account cannot pay for this gift. Choose another account."),
    "This person": text("The person it sends as may not send any more. Change the automation, and it sends as you."),
}
_OF_BUDGET = re.compile(rf"({BUDGET}|{PER_GIFT}):([A-Z]{{3}}):([0-9]+):(.*)", re.DOTALL)


def why(context: RequestContext, run: Row) -> str:
    """Returns why a gift was not sent."""
    reason: str = run["reason"]
    if reason == NOT_APPROVED and run["state"] == FAILED:
        return context.say("Nobody approved the automation in time.")
    if reason in _REASONS:
        return context.say(_REASONS[reason])
    kind, _, rules = reason.partition(":")
    if kind == APPROVAL and rules:
        return context.say(
            "The approval rule %(rules)s asks for an approval that the automation does not have.", rules=rules
        )
    found = _OF_BUDGET.fullmatch(reason)
    if found is None:
        return next((context.say(said) for begins, said in _REFUSALS.items() if reason.startswith(begins)), reason)
    kind, currency, minor, name = found.groups()
    amount = context.language.amount(int(minor), currency)
    if kind == PER_GIFT:
        return context.say("The budget %(name)s allows at most %(most)s for a gift.", name=name, most=amount)
    return context.say("The budget %(name)s had %(left)s left.", name=name, left=amount)
