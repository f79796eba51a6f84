"""Requests about personal data in the back office: the list, recording one, and completing it by an export or an erasure."""

import asyncio
import json
from typing import Annotated

import msgspec
from starlette.responses import Response, StreamingResponse

from largesse.base.errors import InvalidRequest, NotFound, OperatorError, StateConflict
from largesse.base.i18n.languages import text
from largesse.customers.customer_store import find_customer
from largesse.customers.staff_roles import StaffRight
from largesse.db.scope import OFFICE
from largesse.privacy import requests, store
from largesse.privacy.erasing_store import find_job_of_request, list_running_of_requests
from largesse.privacy.requests import Kind, Outcome
from largesse.privacy.store import PrivacyRequest
from largesse.web.console.form import Choice, Email, Text
from largesse.web.kit.query import INT32
from largesse.web.kit.security import OF_FORMS
from largesse.web.office.context import OfficeContext
from largesse.web.office.customers import named

_PAGE = 50
_AT_ONCE_S = 2.0  # for so long a request erases; workers carry on what is left
_KINDS = {Kind.EXPORT: text("A copy of their data"), Kind.ERASE: text("Erasure")}
_OUTCOMES = {Outcome.DONE: text("Done"), Outcome.NOTHING: text("Nothing is stored"), Outcome.DECLINED: text("Declined")}


class RequestForm(msgspec.Struct):
    """A new request."""

    kind: Annotated[str, Choice(tuple(Kind))]
    email: Annotated[str, Email()]
    received: Annotated[str, Text(60)]
    customer: Annotated[str, Text(100, required=False)]


async def show(context: OfficeContext) -> Response:
    """Shows the open requests, by due date, and the completed ones."""
    before = context.parameters.number("before")
    async with context.database.connection(OFFICE) as connection:
        due = await store.list_open(connection, limit=requests.MOST_OPEN)
        jobs = await list_running_of_requests(connection)
        done = await store.list_done(connection, before=before or INT32, limit=_PAGE + 1)
        today = await store.read_today(connection)
    return context.page(
        "privacy.html",
        due=[(one, requests.shown_email(context.services.vault, one)) for one in due],
        jobs=jobs,
        done=done[:_PAGE],
        today=today,
        soon_days=requests.SOON_DAYS,
        kinds=named(context, _KINDS),
        outcomes={str(one): said for one, said in _OUTCOMES.items()},
        older=context.here(before=done[_PAGE - 1].id) if len(done) > _PAGE else None,
        newest=context.here(before=None) if before is not None else None,
        may_act=context.person.may(StaffRight.PRIVACY),
    )


async def take_in(context: OfficeContext) -> Response:
    """Records a request."""
    form = context.form.read(RequestForm)
    received_on = context.form.day("received")
    if received_on is None:
        context.form.error("received", context.say("Choose a day."))
    customer_id = await _customer(context, form.customer)
    if context.form.errors or received_on is None:
        return await show(context)
    try:
        request_id = await requests.receive(
            context.actor, context.services.vault, Kind(form.kind), form.email, received_on, customer_id
        )
    except InvalidRequest:
        said = context.say("Choose today, or one of the last %(days)s days.", days=requests.EARLIEST_DAYS)
        context.form.error("received", said)
        return await show(context)
    return context.see(f"/office/privacy/{request_id}", context.say("The request was recorded."))


async def one(context: OfficeContext, template: str = "privacy_request.html") -> Response:
    """Shows a request with its actions, or its receipt. Raises NotFound."""
    request = await _request(context)
    receipt = None if request.erasure_id is None else await context.read(store.find_receipt, request.erasure_id)
    job = await context.read(find_job_of_request, request.id)
    outcomes = [one for one in Outcome if request.kind == Kind.EXPORT or one is not Outcome.DONE]
    return context.page(
        template,
        request=request,
        kind=context.say(_KINDS[Kind(request.kind)]),
        email=requests.shown_email(context.services.vault, request),
        receipt=receipt,
        soon_days=requests.SOON_DAYS,
        outcome=request.outcome and context.say(_OUTCOMES[Outcome(request.outcome)]),
        outcomes=[(str(one), context.say(_OUTCOMES[one])) for one in outcomes],
        job=None if request.done_at else job,
        may_act=context.person.may(StaffRight.PRIVACY) and request.done_at is None and (job is None or job.has_ended),
    )


async def download(context: OfficeContext) -> Response:
    """Sends everything stored about the address as a file, without storing the file. Raises NotFound, NotProved."""
    request = await _request(context)
    try:
        async with context.patient_actor() as actor:
            exported = await requests.export_for(actor, context.services.vault, request)
    except StateConflict:
        return context.see(_here(context), context.say("The request is done already."))
    except NotFound:
        return context.see(_here(context), context.say("Nothing is stored about this address."))
    written = await asyncio.to_thread(_in_json, exported)  # 10,000 gifts take seconds
    attached = {"Content-Disposition": f'attachment; filename="privacy-request-{request.id}.json"'}
    chunks = (written[at : at + 65_536] for at in range(0, len(written), 65_536))
    return StreamingResponse(chunks, media_type="application/json", headers={**OF_FORMS, **attached})


def _in_json(exported: store.Json) -> bytes:
    return json.dumps(exported, indent=2, ensure_ascii=False, default=str).encode()


async def ask_erasing(context: OfficeContext) -> Response:
    """Asks whether to erase the address of a request. Raises NotFound."""
    return await one(context, "erase_person.html")


async def erase(context: OfficeContext) -> Response:
    """Erases the address of a request everywhere, and shows the receipt, or the progress if that takes long. Raises NotFound."""
    request = await _request(context)
    try:
        async with context.patient_actor() as actor:
            receipt = await requests.erase_for(actor, context.services.vault, request, _AT_ONCE_S)
    except StateConflict:
        return context.see(_here(context), context.say("The request is done already."))
    except NotFound:
        return context.see(_here(context), context.say("Nothing is stored about this address."))
    if receipt is None:
        return context.see(_here(context))
    return context.see(_here(context), context.say("The data was erased."))


async def close(context: OfficeContext) -> Response:
    """Marks a request as done without an erasure. Raises NotFound."""
    outcome = context.form.choice("outcome", tuple(Outcome))
    if context.form.errors:
        return await one(context)
    try:
        await requests.finish(context.actor, context.number("request"), Outcome(outcome))
    except InvalidRequest:
        context.form.error("outcome", context.say("Erase the data to finish this request, or choose another result."))
        return await one(context)
    except StateConflict:
        return context.see(_here(context), context.say("The request is done already."))
    return context.see("/office/privacy", context.say("The request is done, and its address was erased."))


async def _request(context: OfficeContext) -> PrivacyRequest:
    return await context.read(store.find_request, context.number("request"))


async def _customer(context: OfficeContext, key: str) -> int | None:
    """Returns the id of the customer that the form names; None for all customers. Adds an error to the form if there is no such customer."""
    if not key or "customer" in context.form.errors:
        return None
    try:
        return await context.read(find_customer, key)
    except OperatorError:
        context.form.error("customer", context.say("There is no customer of that key."))
        return None


def _here(context: OfficeContext) -> str:
    return f"/office/privacy/{context.number('request')}"
