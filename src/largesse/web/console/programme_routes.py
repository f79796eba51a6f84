"""The routes of gift programmes: thank-you notes, approvals, automations, campaigns and branding. `routes.py` adds them to its table."""

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.responses import Response

from largesse.base.errors import HasEnded
from largesse.base.i18n.languages import text
from largesse.catalogue.pictures import MAX_BYTES
from largesse.customers.roles import Right
from largesse.web.console import approval_rules, approvals, automations, branding, campaigns, notes
from largesse.web.console.context import RequestContext
from largesse.web.console.page_routes import Access, Group, PageRoute
from largesse.web.kit.body import BodyLimits

_page = partial(PageRoute, "GET")
_form = partial(PageRoute, "POST")
_step_up = partial(_form, step_up=True)

NOTES = (
    _page(notes.HERE, notes.show, Right.SEE_ORDERS, text("Thank-you notes"), Group.GIFTS, "heart"),
    _form(notes.HERE, notes.save, Right.SETTINGS),
)

_RULES = "/app/approvals/rules"
APPROVALS = (
    _page("/app/approvals", approvals.show, Access.MEMBER, text("Approvals"), Group.GIFTS, "stamp"),
    _page(_RULES, approval_rules.show, Right.SETTINGS, text("Approval rules")),
    _step_up(
        _RULES, approval_rules.create, Right.SETTINGS, text("Approval rules"), most_fields=approval_rules.MOST_FIELDS
    ),
    _step_up(f"{_RULES}/{{rule:int}}/end", approval_rules.end, Right.SETTINGS),
    _page("/app/approvals/{send}", approvals.one, Access.MEMBER, text("Approval")),
    _step_up("/app/approvals/{send}", approvals.answer, Access.MEMBER, text("Approval")),
    _form("/app/approvals/{send}/withdraw", approvals.take_back, Right.SEND),
)

_ENDED = text("This has ended already. Nothing was changed.")


def _or_ended(
    page: str, handler: Callable[[RequestContext], Awaitable[Response]]
) -> Callable[[RequestContext], Awaitable[Response]]:
    """Returns the handler of a form. Once what it changes has ended, the form leads to `page`, such as `/app/campaigns/{campaign}`, which says so."""

    async def handle(context: RequestContext) -> Response:
        try:
            return await handler(context)
        except HasEnded:
            return context.see(page.format(**context.request.path_params), context.say(_ENDED))

    return handle


_AUTOMATION = f"{automations.HERE}/{{automation:int}}"
_of_automation = partial(_or_ended, f"{automations.HERE}/{{automation}}")
AUTOMATIONS = (
    _page(automations.HERE, automations.show, Right.CONTACTS, text("Automations"), Group.GIFTS, "calendar-heart"),
    _page(f"{automations.HERE}/new", automations.ask, Right.CONTACTS, text("New automation")),
    _step_up(f"{automations.HERE}/new", automations.create, Right.CONTACTS, text("New automation")),
    _page(_AUTOMATION, automations.one, Right.CONTACTS, text("Automation")),
    _page(f"{_AUTOMATION}/edit", automations.edit, Right.CONTACTS, text("Change an automation")),
    _step_up(f"{_AUTOMATION}/edit", _of_automation(automations.change), Right.CONTACTS, text("Change an automation")),
    _step_up(f"{_AUTOMATION}/approve", _of_automation(automations.approve), Right.CONTACTS),
    _form(f"{_AUTOMATION}/pause", _of_automation(partial(automations.pause, paused=True)), Right.CONTACTS),
    _form(f"{_AUTOMATION}/resume", _of_automation(partial(automations.pause, paused=False)), Right.CONTACTS),
    _form(f"{_AUTOMATION}/skip", _of_automation(automations.skip), Right.CONTACTS),
    _page(f"{_AUTOMATION}/end", automations.ask_end, Right.CONTACTS, text("End an automation")),
    _form(f"{_AUTOMATION}/end", _of_automation(automations.end), Right.CONTACTS),
)

_CAMPAIGN = f"{campaigns.HERE}/{{campaign:int}}"
_of_campaign = partial(_or_ended, f"{campaigns.HERE}/{{campaign}}")
_campaign_form = partial(_form, who=Right.SEND, limits=campaigns.LIST_LIMITS)
CAMPAIGNS = (
    _page(campaigns.HERE, campaigns.show, Right.SEND, text("Campaigns"), Group.GIFTS, "megaphone"),
    _page(f"{campaigns.HERE}/new", campaigns.ask, Right.SEND, text("New campaign")),
    _campaign_form(f"{campaigns.HERE}/new", campaigns.create, title=text("New campaign")),
    _page(_CAMPAIGN, campaigns.one, Right.SEND, text("Campaign")),
    _page(f"{_CAMPAIGN}/edit", campaigns.edit, Right.SEND, text("Change a campaign")),
    _campaign_form(f"{_CAMPAIGN}/edit", _of_campaign(campaigns.change), title=text("Change a campaign")),
    _form(f"{_CAMPAIGN}/pause", _of_campaign(partial(campaigns.pause, paused=True)), Right.SEND),
    _form(f"{_CAMPAIGN}/resume", _of_campaign(partial(campaigns.pause, paused=False)), Right.SEND),
    _page(f"{_CAMPAIGN}/end", campaigns.ask_end, Right.SEND, text("End a campaign")),
    _form(f"{_CAMPAIGN}/end", _of_campaign(campaigns.end), Right.SEND),
)

# Reads a little more than the limit, so that the page can say beside the form what is too large.
_OF_PICTURES = BodyLimits(4 * MAX_BYTES, whole_s=60.0, pause_s=15.0)
_picture_form = partial(_form, limits=_OF_PICTURES, takes_files=True, who=Right.SETTINGS, title=branding.TITLE)
BRANDING = (
    _page(branding.HERE, branding.show, Right.SETTINGS, branding.TITLE, Group.SETUP, "palette"),
    _step_up(branding.HERE, branding.save, Right.SETTINGS, branding.TITLE),
    _page(f"{branding.HERE}/mail", branding.mail, Right.SETTINGS, branding.TITLE),
    _page(f"{branding.HERE}/claim", branding.claim, Right.SETTINGS, branding.TITLE),
    _picture_form(f"{branding.HERE}/logo", branding.save_logo),
    _form(f"{branding.HERE}/logo/remove", branding.remove_logo, Right.SETTINGS),
    _picture_form(f"{branding.HERE}/wrappings", branding.add_own),
    _form(f"{branding.HERE}/wrappings/{{key}}/remove", branding.remove_own, Right.SETTINGS),
)
