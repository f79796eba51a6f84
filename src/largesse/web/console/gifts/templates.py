"""Templates: the list with the use of each, the forms that create, change and remove one, and the field of another form that chooses one.

Beside the form of a template are previews of what its recipients will see. They follow the typing.
"""

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from largesse.automations.service import change_template, list_in_both
from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.languages import LANGUAGES, Language, language_of_country, text
from largesse.catalogue.snapshot import Snapshot
from largesse.customers.authenticator import Caller
from largesse.drafts.model import Draft, DraftContent
from largesse.ledger.store import FundingAccount, list_funding_accounts
from largesse.mail.people.automation_words import GONE
from largesse.orders.options import MAX_FROM_NAME, MAX_MESSAGE
from largesse.orders.order import Gift
from largesse.orders.placeholders import unknown_placeholders
from largesse.orders.request import OrderSpec, TemplateChoice, read_send, send_request
from largesse.reports.usage import MOST_COUNTED, template_uses
from largesse.templates import service
from largesse.templates.store import Template, TemplateContent, list_templates
from largesse.web.console.context import RequestContext
from largesse.web.console.gifts.browsing import page_number
from largesse.web.console.send import message
from largesse.web.console.send.gift import Picked, amount_values, priced, read_picked
from largesse.web.console.send.opening import (
    Chosen,
    NewPrice,
    Open,
    caller_and_catalogue,
    chosen,
    cost_minor,
    is_sendable,
    new_price,
    person_as_caller,
)
from largesse.web.console.send.preview import held
from largesse.web.kit.security import with_styles

_SHOWN = 50


async def show(context: RequestContext) -> Response:
    """Shows the templates, newest first."""
    caller, snapshot = await caller_and_catalogue(context)
    principal, page = caller.principal, page_number(context)
    customer_id = principal.customer_id
    async with context.database.connection(principal.scope) as connection:
        found = await list_templates(connection, principal, offset=(page - 1) * _SHOWN, limit=_SHOWN + 1)
        shown = found[:_SHOWN]
        uses = await template_uses(connection, principal, [one.id for one in shown])
    return context.page(
        "gifts/templates.html",
        templates=shown,
        costs={one.id: cost_minor(snapshot, customer_id, one) for one in shown},
        new_prices={one.id: new_price(snapshot, customer_id, one) for one in shown},
        uses=uses,
        most_counted=MOST_COUNTED,
        gone={one.id for one in shown if not is_sendable(snapshot, customer_id, one)},
        older=context.here(page=page + 1) if len(found) > _SHOWN else None,
        newer=context.here(page=page - 1) if page > 1 else None,
    )


async def ask_removal(context: RequestContext) -> Response:
    """Asks whether to remove a template, and names the automations that send it. Raises NotFound."""
    template = await read_own(context)
    automations = await list_in_both(context.database, context.person.customer_id)
    using = [one for one in automations if one.template_id == template.id]
    return context.page("gifts/remove_template.html", saved=template, automations=using)


async def remove(context: RequestContext) -> Response:
    """Removes a template. It can no longer be sent. Raises NotFound."""
    template = await read_own(context)
    await service.remove_template(context.actor, template.id)
    return context.see("/app/templates", context.say("The template %(name)s was deleted.", name=called(template)))


async def read_own(context: RequestContext) -> Template:
    """Returns the customer's template of the path. Raises NotFound."""
    caller, snapshot = await caller_and_catalogue(context)
    given = {"template": str(context.number("template"))}
    picked = await read_picked(context, caller, snapshot, lambda name: given.get(name, ""))
    assert picked.template is not None, "a template was asked for"
    return picked.template


def called(template: Template) -> str:
    """Returns the name of a template, otherwise the name of its gift."""
    return template.name or template.gift_name


_NO_DAYS = text("Type a number of days from 1 to %(most)s, or leave it empty.")
_TOO_MANY = text("You have reached the limit of %(most)s templates. Delete one first.")
_SAVED = text("The template was saved. You can send it now.")
_PRICE_SAVED = text("The template has today's price.")
_PRICE_CHANGED = text("The price has changed again since you saw it. Nothing was saved: look at it again.")
_CHOOSE = text("Choose a template from the list.")
_UNKNOWN = text(
    "The message of this template has placeholders that do not exist: %(placeholders)s. Change the template first."
)
_CURRENCY = text("The gift costs %(currency)s. Choose an account in that currency.")
_GIFT = ("product", "country", "collection")


class _Typed(msgspec.Struct, frozen=True):
    """The content of a form. `said` and `content` are None if the form has errors."""

    picked: Picked
    said: Chosen | None = None  # what would be sent, for the previews
    content: TemplateContent | None = None  # what would be saved


async def ask(context: RequestContext) -> Response:
    """Shows the form of a new template, for the gift in the address or as a copy of the template in the address."""
    caller, snapshot = await caller_and_catalogue(context)
    like = None
    given: Callable[[str], str] = context.query
    if context.query("copy"):
        copied = {"template": context.query("copy")}
        like = (await read_picked(context, caller, snapshot, lambda name: copied.get(name, ""))).template
        given = _gift_of(like) if like else given
    picked = await _read_gift(context, caller, snapshot, given)
    if picked is None and like is None:
        return context.see("/app/catalogue?template=new")
    return await _show(context, picked, await _said(context, like) if like else None, like=like)


async def create(context: RequestContext) -> Response:
    """Creates a template, or shows previews of what is typed. Raises NotFound if there is no such gift."""
    caller, snapshot = await caller_and_catalogue(context)
    typed = await _typed(context, caller, snapshot, None)
    if typed.content is None or _looks(context):
        return await _show(context, typed.picked, typed.said)
    try:
        template_id = await service.create_template(context.actor, typed.content)
    except service.TooManyTemplates:
        context.form.error("name", context.say(_TOO_MANY, most=service.MOST_TEMPLATES))
        return await _show(context, typed.picked, typed.said)
    return context.see(f"/app/templates/{template_id}", context.say(_SAVED))


async def edit(context: RequestContext) -> Response:
    """Shows the form of a template, with the gift in the address if there is one. Raises NotFound."""
    template = await read_own(context)
    caller, snapshot = await caller_and_catalogue(context)
    if context.query("product") or context.query("collection"):
        other = await _read_gift(context, caller, snapshot, context.query)
        return await _show(context, other, None, template=template)
    picked = await _read_gift(context, caller, snapshot, _gift_of(template))
    return await _show(context, picked, await _said(context, template), template=template)


async def change(context: RequestContext) -> Response:
    """Changes a template, or shows previews of what is typed. Raises NotFound."""
    template, form = await read_own(context), context.form
    caller, snapshot = await caller_and_catalogue(context)
    now = _now(context, template)
    if all(form[name] == form[f"was_{name}"] for name in _GIFT):
        form.keep_others({name: now[name] for name in _GIFT})
    form.keep_others({name: value for name, value in now.items() if name not in _GIFT})
    typed = await _typed(context, caller, snapshot, template)
    if typed.content is None or _looks(context):
        return await _show(context, typed.picked, typed.said, template=template)
    await change_template(context.actor, template.id, typed.content, template)
    return context.see(f"/app/templates/{template.id}", context.say(_SAVED))


async def take_price(context: RequestContext) -> Response:
    """Saves a template with today's price of its gift, if that is the price that was shown. Raises NotFound."""
    template, form = await read_own(context), context.form
    _, snapshot = await caller_and_catalogue(context)
    found, path, said = new_price(snapshot, context.person.customer_id, template), f"/app/templates/{template.id}", None
    if form["sends"]:
        path = f"/app/send/gift?{urlencode({'template': template.id, 'draft': form['draft']})}"
    if found is not None:
        said = _PRICE_SAVED if found.seen == form["seen"] else _PRICE_CHANGED
    if found is not None and said is _PRICE_SAVED:
        now = {name: getattr(template, name) for name in TemplateContent.__struct_fields__}
        content = TemplateContent(**{**now, "value_minor": found.value_minor})
        await change_template(context.actor, template.id, content, template)
    return context.see(path, context.say(said) if said else None)


def _now(context: RequestContext, template: Template) -> dict[str, str]:
    """Returns what the fields of a template show."""
    gift = _gift_of(template)
    return {
        **{name: gift(name) for name in _GIFT},
        "country": gift("country") if template.product_id else "",  # the form of a collection has none
        "value": context.language.typed(template.value_minor, template.currency),
        "name": called(template),
        "wrapping_key": template.wrapping_key or "",
        "from_name": template.from_name or "",
        "message": template.message or "",
        "expiry_after_days": str(template.expiry_after_days or ""),
    }


def _gift_of(template: Template) -> Callable[[str], str]:
    """Returns a function that reads the gift of a template like parameters of an address."""
    named: Mapping[str, object] = {
        "product": template.product_id,
        "collection": template.collection_id,
        "country": template.country,
    }
    return lambda name: str(named.get(name) or "")


async def _read_gift(
    context: RequestContext, caller: Caller, snapshot: Snapshot, given: Callable[[str], str]
) -> Picked | None:
    """Returns the product or collection that `given` names; None if there is none."""
    try:
        return await read_picked(context, caller, snapshot, lambda name: given(name) if name in _GIFT else "")
    except NotFound:
        return None


def _looks(context: RequestContext) -> bool:
    """Returns whether the form only asks for previews. Its field `look` has their language."""
    return bool(context.form["look"])


async def _typed(context: RequestContext, caller: Caller, snapshot: Snapshot, before: Template | None) -> _Typed:
    """Returns the content of the form. Adds errors to the form. Raises NotFound if there is no such gift."""
    form = context.form
    picked = await _read_gift(context, caller, snapshot, form.__getitem__)
    if picked is None:
        raise NotFound("There is no such gift.")
    choice, gift = await priced(context, caller, picked)
    name = form.text("name", service.MAX_NAME, required=not _looks(context))
    said = form.read(message.MessageForm)
    message.check_wrapping(context, await message.offered_wrappings(context))
    draft = DraftContent(wrapping_key=said.wrapping_key, from_name=said.from_name or None, message=said.message or None)
    days = before.expiry_after_days if before else None
    if context.person.plan == "enterprise":
        days = _days(context)
    if form.errors or gift is None:
        return _Typed(picked)
    shown = await chosen(context, Open(caller, Draft("", draft.chosen(choice), caller.now), snapshot))
    return _Typed(picked, shown, _content(picked, gift, draft, name, days))


def _content(picked: Picked, gift: Gift, draft: DraftContent, name: str, days: int | None) -> TemplateContent:
    named = picked.product or picked.collection
    assert named is not None, "a template has a gift"
    assert draft.wrapping_key is not None, "one of those offered"
    return TemplateContent(
        name=name,
        product_id=gift.product_id,
        collection_id=gift.collection_id,
        gift_name=named.name,
        value_minor=gift.value_minor,
        currency=gift.currency,
        country=gift.country,
        wrapping_key=draft.wrapping_key,
        from_name=draft.from_name,
        message=draft.message,
        expiry_after_days=days,
    )


def _days(context: RequestContext) -> int | None:
    """Returns after how many days the gift expires; None if the field is empty. Adds an error to the form if it is wrong."""
    if not context.form["expiry_after_days"].strip():
        return None
    days = context.form.number("expiry_after_days") or 0
    if not 1 <= days <= service.MAX_EXPIRY_DAYS:
        context.form.error("expiry_after_days", context.say(_NO_DAYS, most=service.MAX_EXPIRY_DAYS))
    return days


async def _said(context: RequestContext, template: Template) -> Chosen | None:
    """Returns what the template sends; None if it can no longer be sent."""
    caller, snapshot = await caller_and_catalogue(context)
    content = DraftContent().chosen(TemplateChoice(template.id))
    return await chosen(context, Open(caller, Draft("", content, caller.now), snapshot))


async def _show(
    context: RequestContext,
    picked: Picked | None,
    said: Chosen | None,
    *,
    template: Template | None = None,
    like: Template | None = None,
) -> Response:
    """Returns the page with the form and the previews: of the saved template, or of the typed one after a POST."""
    start = None if context.request.method == "POST" else template or like
    language = _shown_in(context, said)
    shown = await held(context, said, language) if said else None
    name = called(start) if start else ""
    wrappings = await message.offered_wrappings(context)
    response = context.page(
        "gifts/template.html",
        saved=template,
        saved_name=called(template) if template else "",
        new_price=await _new_price(context, template),
        amounts=amount_values(context, picked) if picked else None,
        gift=picked and (picked.product or picked.collection),
        name=context.say("Copy of %(name)s", name=name)[: service.MAX_NAME] if like else name,
        value=_value(context, start, picked),
        wrappings=wrappings,
        wrapping=message.chosen_wrapping(
            context.form["wrapping_key"] or (start.wrapping_key if start else None), wrappings
        ),
        start=start,
        now=_now(context, template) if template else {},
        shown=shown,
        shown_in=language,
        most_name=service.MAX_NAME,
        most_from_name=MAX_FROM_NAME,
        most_message=MAX_MESSAGE,
    )
    if shown:
        response.headers.update(with_styles(shown.styles))
    return response


async def _new_price(context: RequestContext, template: Template | None) -> NewPrice | None:
    _, snapshot = await caller_and_catalogue(context)
    return new_price(snapshot, context.person.customer_id, template) if template else None


def _shown_in(context: RequestContext, said: Chosen | None) -> Language:
    """Returns the chosen language of the previews, otherwise the language of the gift's country, in which the mail is sent."""
    of_mail = language_of_country(said.gift.country) if said else context.language
    return LANGUAGES.get(context.form["look"]) or of_mail


def _value(context: RequestContext, start: Template | None, picked: Picked | None) -> str:
    """Returns the initial amount: the template's, if the gift has the same currency."""
    if start is None or picked is None or picked.currency != start.currency:
        return ""
    return context.language.typed(start.value_minor, start.currency)


async def offered_templates(
    context: RequestContext, templates: Sequence[Template], accounts: Sequence[FundingAccount]
) -> list[tuple[str, str]]:
    """Returns the options of a field that chooses a template: first those in the currency of the first account, which is preselected."""
    _, snapshot = await caller_and_catalogue(context)
    first = accounts[0].currency if accounts else None
    in_order = sorted(templates, key=lambda one: first is not None and one.currency != first)
    costs = [
        context.language.amount(cost_minor(snapshot, context.person.customer_id, one), one.currency) for one in in_order
    ]
    return [(str(one.id), f"{called(one)} ({cost})") for one, cost in zip(in_order, costs, strict=True)]


async def find_gift(context: RequestContext, caller: Caller, template_id: int) -> tuple[Gift, OrderSpec] | None:
    """Returns what a template sends, at today's price; None if it cannot be sent."""
    choice = TemplateChoice(template_id)
    spec = read_send(send_request(choice, None, code_quantity=1), caller.principal, caller.now)
    try:
        return await context.services.orders.find_gift(caller, choice, spec)
    except InvalidRequest:
        return None


async def check_template(context: RequestContext) -> None:
    """Adds errors to a form that chooses a template and an account.

    The template's gift can be sent, its message is complete, and the account has its currency.
    """
    form, caller = context.form, await person_as_caller(context)
    if not form["template"]:
        form.error("template", context.say(_CHOOSE))
        return
    found = await find_gift(context, caller, form.number("template") or 0)
    if found is None:
        form.error("template", context.say(GONE))
        return
    gift, spec = found
    known = [name for name, _ in await message.offered_placeholders(context)]
    if unknown := unknown_placeholders(spec.options.message or "", known):
        form.error("template", context.say(_UNKNOWN, placeholders=", ".join(unknown)))
    accounts = await context.read(list_funding_accounts, caller.principal)
    account = next((one for one in accounts if one.id == form.number("account")), None)
    if account is not None and account.currency != gift.currency:
        form.error("account", context.say(_CURRENCY, currency=gift.currency))
