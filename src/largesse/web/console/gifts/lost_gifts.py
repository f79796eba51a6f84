"""The item on Home for automations whose template cannot be sent, before the day of their next gift."""

from largesse.automations.store import list_automations
from largesse.customers.roles import Right
from largesse.templates.service import MOST_TEMPLATES
from largesse.templates.store import list_templates
from largesse.web.console.attention import AttentionItem
from largesse.web.console.context import RequestContext
from largesse.web.console.gifts.templates import is_sendable
from largesse.web.console.send.opening import caller_and_catalogue


async def of_lost_gifts(context: RequestContext) -> list[AttentionItem]:
    """Returns the item for running automations whose gift cannot be sent; none if the person may not see automations."""
    if not context.person.may(Right.CONTACTS):
        return []
    running = [one for one in await context.read(list_automations, context.customer) if one.paused_at is None]
    if not running:
        return []
    _, snapshot = await caller_and_catalogue(context)
    templates = await context.read(list_templates, context.principal, offset=0, limit=MOST_TEMPLATES)
    sent = {one.id for one in templates if is_sendable(context, snapshot, one)}
    lost = [one.id for one in running if one.template_id not in sent]
    if not lost:
        return []
    said = context.ngettext(
        "%(count)s automation cannot send its gift any more",
        "%(count)s automations cannot send their gift any more",
        len(lost),
    )
    more = context.say("The gift of the template is gone, or has another price now. Save the template again.")
    path = f"/app/automations/{lost[0]}"
    return [AttentionItem("calendar-heart", "bad", said, more, context.say("See the automation"), path)]
