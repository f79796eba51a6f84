"""Parcels: packing slips and labels, tracking numbers, and returns. Lists show no recipients."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.errors import FileRefused
from largesse.base.i18n.languages import text
from largesse.customers.staff_roles import StaffRight
from largesse.db.scope import OFFICE
from largesse.fulfilment import parcels
from largesse.fulfilment.inventory import Upload
from largesse.fulfilment.parcels import ParcelState
from largesse.fulfilment.shipments import COLUMNS, Sent, import_shipments, pack_parcels, send_parcels
from largesse.web.console.form import Text
from largesse.web.console.order_words import RETURN_REASONS
from largesse.web.kit.query import INT64
from largesse.web.office.context import OfficeContext, file_name, refused, uploaded

HERE = "/office/parcels"
MOST_BYTES = 1024 * 1024
MOST_SENT = 1_000  # parcels in one file
SHOWN = 50
MOST_FIELDS = 2 * SHOWN + 10
_LONGEST = 100
STATES: Mapping[ParcelState, tuple[str, str]] = {
    ParcelState.WAITING: ("waiting", text("To send")),
    ParcelState.SENT: ("good", text("Sent")),
    ParcelState.BACK: ("bad", text("Came back")),
}
_CHOOSE_OTHERS = text("Choose other parcels: these addresses cannot be decrypted: %(parcels)s.")
_TYPE_NUMBER = text("Type the tracking number of at least one parcel, or tick “sent without a number”.")


async def show(context: OfficeContext) -> Response:
    """Lists the parcels that wait, were sent or came back, or those with a tracking number."""
    environment, asked = _environment(context), context.query("state")
    state = ParcelState(asked) if asked in set(ParcelState) else ParcelState.WAITING
    words = context.query("q").strip()
    async with context.database.connection(OFFICE) as connection:
        beyond = context.parameters.number("after")
        found = (
            await parcels.find_tracked(connection, environment, words)
            if words
            else await parcels.list_parcels(connection, environment, state, beyond, SHOWN + 1)
        )
        to_pick = (
            await parcels.list_to_pick(connection, environment) if state is ParcelState.WAITING and not words else []
        )
        counts = await parcels.count_parcels(connection, environment)
    return context.page(
        "parcels.html",
        query=context.query,
        parcels=found[:SHOWN],
        more=found[SHOWN - 1].id if len(found) > SHOWN else None,
        state=state,
        is_search=bool(words),
        to_pick=to_pick,
        counts=counts,
        tabs=[(one, context.say(STATES[one][1])) for one in ParcelState],
        states={one: (kind, context.say(word)) for one, (kind, word) in STATES.items()},
        reasons={one: context.say(word) for one, word in RETURN_REASONS.items()},
        may_change=context.person.may(StaffRight.PARCELS),
    )


async def pack(context: OfficeContext) -> Response:
    """Shows packing slips or labels of waiting parcels, or sends their labels as a CSV file."""
    to, chosen = context.form.choice("to", ("slips", "labels", "csv")), context.form.numbers("parcel")[:SHOWN]
    if not chosen or context.form.errors:
        context.form.error("parcel", context.say("Choose at least one parcel."))
        return await show(context)
    environment = _environment(context)
    packed = await pack_parcels(context.actor, context.services.vault, environment, again=True, ids=chosen)
    unreadable = ", ".join(map(str, packed.unreadable))
    if to == "csv":
        if unreadable:
            context.form.error("parcel", context.say(_CHOOSE_OTHERS, parcels=unreadable))
            return await show(context)
        return await context.csv("parcels.csv", COLUMNS, [one.cells for one in packed.parcels])
    return context.page("parcels_print.html", is_labels=to == "labels", packed=packed.parcels, unreadable=unreadable)


async def ask_numbers(context: OfficeContext) -> Response:
    """Shows the form for the tracking numbers of packed parcels."""
    environment = _environment(context)
    found = await context.read(
        parcels.list_parcels, environment, ParcelState.WAITING, context.parameters.number("after"), SHOWN + 1
    )
    more = found[SHOWN - 1].id if len(found) > SHOWN else None
    return context.page("parcels_send.html", parcels=found[:SHOWN], more=more, most=MOST_SENT)


async def send(context: OfficeContext) -> Response:
    """Records parcels as sent: those with a typed tracking number, or ticked as sent without one."""
    carrier = context.form.text("carrier", _LONGEST)
    sent: list[Sent] = []
    for name, _ in context.form.fields:
        parcel = name.removeprefix("tracking_")
        if parcel != name and parcel.isdigit():
            number = context.form.text(name, _LONGEST, required=False)
            if number or context.form[f"sent_{parcel}"] == "yes":
                sent.append(Sent(parcel, carrier, number or None, len(sent) + 1))
    if not sent:
        context.form.error("carrier", context.say(_TYPE_NUMBER))
    if context.form.errors:
        return await ask_numbers(context)
    try:
        done, before = await send_parcels(
            context.actor, context.services.vault, _environment(context), "parcels on a page", sent
        )
    except FileRefused as refusal:
        context.form.error("carrier", refused(context, refusal))
        return await ask_numbers(context)
    return context.see(f"{HERE}?state=sent", _said(context, done, before))


async def import_file(context: OfficeContext) -> Response:
    """Records the parcels of a carrier's file as sent."""
    content = uploaded(context, MOST_BYTES)
    if content is None:
        return await ask_numbers(context)
    environment, file = _environment(context), Upload(file_name(context), content)
    try:
        done, before = await import_shipments(context.actor, context.services.vault, environment, file, most=MOST_SENT)
    except FileRefused as refusal:
        context.form.error("file", refused(context, refusal))
        return await ask_numbers(context)
    return context.see(f"{HERE}?state=sent", _said(context, done, before))


def _said(context: OfficeContext, done: int, before: int) -> str:
    said = context.ngettext("%(count)s parcel sent.", "%(count)s parcels sent.", done)
    if before:
        more = context.ngettext("%(count)s was sent before.", "%(count)s were sent before.", before)
        said = f"{said} {more}"
    return said


async def one(context: OfficeContext) -> Response:
    """Shows a parcel. Raises NotFound."""
    parcel = await context.read(parcels.find_parcel, _environment(context), _id(context))
    kind, word = STATES[parcel.state]
    return context.page(
        "parcel.html",
        parcel=parcel,
        kind=kind,
        word=context.say(word),
        reasons=[(one, context.say(RETURN_REASONS[one])) for one in parcels.RETURN_REASONS],
        may_change=context.person.may(StaffRight.PARCELS),
    )


class SentForm(msgspec.Struct):
    """The carrier of a parcel, and its tracking number."""

    carrier: Annotated[str, Text(_LONGEST)]
    tracking_number: Annotated[str, Text(_LONGEST, required=False)]


async def send_one(context: OfficeContext) -> Response:
    """Records a parcel as sent. Raises NotFound."""
    form = context.form.read(SentForm)
    if context.form.errors:
        return await one(context)
    parcel = await context.read(parcels.find_parcel, _environment(context), _id(context))
    sent = Sent(str(parcel.id), form.carrier, form.tracking_number or None, 1)
    done, before = await send_parcels(
        context.actor, context.services.vault, _environment(context), f"parcel {parcel.id}", [sent]
    )
    return context.see(f"{HERE}/{parcel.id}", _said(context, done, before))


async def correct(context: OfficeContext) -> Response:
    """Corrects the carrier and the tracking number of a parcel on its way. Raises NotFound."""
    form = context.form.read(SentForm)
    if not context.form.errors:
        try:
            parcel = await parcels.correct_number(
                context.actor, _environment(context), _id(context), form.carrier, form.tracking_number or None
            )
        except parcels.NotOnItsWay:
            context.form.error("carrier", context.say("This parcel is not on its way."))
        else:
            return context.see(f"{HERE}/{parcel.id}", context.say("Tracking number corrected."))
    return await one(context)


async def came_back(context: OfficeContext) -> Response:
    """Records that a parcel came back. Raises NotFound."""
    reason = context.form.choice("reason", parcels.RETURN_REASONS)
    if not context.form.errors:
        try:
            parcel = await parcels.note_return(
                context.actor, context.services.vault, _environment(context), _id(context), reason
            )
        except parcels.NotOnItsWay:
            context.form.error("reason", context.say("This parcel is not on its way."))
        else:
            return context.see(f"{HERE}/{parcel.id}", context.say("Return recorded."))
    return await one(context)


async def send_again(context: OfficeContext) -> Response:
    """Adds a returned parcel to those to send again. Raises NotFound."""
    parcel_id = _id(context)
    try:
        await parcels.send_again(context.actor, _environment(context), parcel_id)
    except parcels.AddressErased:
        said = context.say("The address was erased, so the parcel cannot be sent again.")
    except parcels.NotBack:
        said = context.say("This parcel did not come back, or waits to be sent already.")
    else:
        said = context.say("The parcel is among those to send.")
    return context.see(f"{HERE}/{parcel_id}", said)


def _id(context: OfficeContext) -> int:
    return context.number("parcel", highest=INT64)


def _environment(context: OfficeContext) -> str:
    """Returns the environment whose parcels this process sends."""
    return context.services.settings.environment
