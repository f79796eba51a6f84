"""Amounts as people type them.

What a handler of the web application is handed, and how it answers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, tzinfo
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from largesse.audit.service import Acting, by_person
from largesse.base.amounts import UnreadableAmount, read_amount
from largesse.base.errors import NotFound
from largesse.base.hosts import by_name
from largesse.base.i18n.languages import Language
from largesse.base.text import plain_text
from largesse.customers.access import writing
from largesse.customers.actor import Actor, person_actor
from largesse.customers.principal import Principal
from largesse.customers.secrets import new_secret, secret_hash
from largesse.customers.sessions import Person, Session
from largesse.customers.sign_in import Origin
from largesse.db.pool import Connection, Database, ReadOnly
from largesse.web.console.form import Form
from largesse.web.console.layout import Layout, zone_of
from largesse.web.console.page_routes import PageRoute
from largesse.web.console.parameters import PARAMETERS
from largesse.web.kit.pages import see
from largesse.web.kit.query import query_of
from largesse.web.kit.requests import client_address
from largesse.web.kit.security import OF_FORMS
from largesse.web.kit.services import Services


def typed_amount(context: RequestContext, field: str, currency: str) -> int:
    """Returns what was typed into a field of the form, in minor units; 0, with what is wrong noted, where it is no amount above zero.

    The page that shows the form again says below the field how the amount was understood.
    """
    try:
        amount_minor = read_amount(context.form[field], currency, context.language)
    except UnreadableAmount as unreadable:
        context.form.error(field, context.say(unreadable.english, **unreadable.values))
        return 0
    context.understood[field] = context.language.amount(amount_minor, currency)
    return amount_minor


DEVICE = "device"  # the cookie by which a browser is known again
_HIGHEST = 2**31 - 1


class NotProved(Exception):
    """Before going on somebody is to show that it is still them."""


_MOST_SUBJECT = 200  # characters of a file's name that the audit log keeps


class RequestContext:
    """A request to a page: who asks, what they posted, and the ways to answer it."""

    def __init__(
        self,
        request: Request,
        services: Services,
        layout: Layout,
        route: PageRoute,
        *,
        session: Session | None,
        language: Language,
    ) -> None:
        self.request = request
        self.services = services
        self.route = route
        self.session = session
        self.language = language
        self.form = Form({}, self.say)
        self.understood: dict[str, str] = {}  # amounts as they were read, by the name of their field
        self.parameters = query_of(request, PARAMETERS)
        self.files: dict[str, bytes] = {}  # that were handed in, by the name of their field
        self.notice: str | None = None  # what the next page is to say
        self.cookie = ""  # of the session that the browser named, open or not
        self.token_of = ""  # the cookie that forms of this page belong to
        self.page_of = ""  # the cookie that the page of the posted form belonged to
        self.new_cookie: str | None = None  # the secret of the session that begins; empty: it ends
        known = request.cookies.get(DEVICE, "")
        self.device = known if secret_hash(known) else new_secret()
        self._layout = layout

    @property
    def person(self) -> Person:
        """Who asks, at the customer they chose; for routes of the table that are not for ANYONE or SIGNED_IN."""
        assert self.session is not None, "the guard lets nobody in without a session"
        assert self.session.person is not None, "the guard has them choose a customer"
        return self.session.person

    @property
    def database(self) -> Database:
        """The pool, for reading: `context.database.connection(context.person.scope)`. What writes does so in `writing`."""
        return ReadOnly(self.services.database)

    def writing(self, *, changes_access: bool = False) -> AbstractAsyncContextManager[Connection]:
        """A transaction for what the person writes, as `largesse.customers.access` begins it. Raises AccessChanged."""
        return writing(self.services.database, self.person, changes_access=changes_access)

    @property
    def place(self) -> str:
        """What forms of the page are about: the person at their customer, and the environment; empty without one."""
        person = self.session.person if self.session else None
        return f"{person.user_id}-{person.environment}" if person else ""

    @property
    def address(self) -> str:
        """What was asked for: the path, with its parameters."""
        url = self.request.url
        return url.path + (f"?{url.query}" if url.query else "")

    @property
    def origin(self) -> Origin:
        """Where they come from."""
        request = self.request
        return Origin(
            client_address(request.scope),
            request.headers.get("user-agent", ""),
            request.scope["request_id"],
            self.device,
        )

    @property
    def zone(self) -> tzinfo:
        """The zone that the person's times are in: the one they chose, else UTC."""
        return zone_of(self.session)

    @property
    def principal(self) -> Principal:
        """The person as rules and reads know who acts."""
        person = self.person
        return Principal(
            key_id=None,
            environment=person.environment,
            customer_id=person.customer_id,
            customer_name=person.customer_name,
            plan=person.plan,
            funding=person.funding,
            service_account_id=None,
            service_account_name="",
            service_account_active=True,
            user_id=person.user_id,
            role=person.role,
            session_id=person.session_id,
        )

    @property
    def acting(self) -> Acting:
        """The person as the audit log keeps them."""
        person = self.person
        who = by_person(person.user_id, person.email, self.origin.address, self.request.scope["request_id"])
        return Acting(who, self.services.chains)

    @property
    def actor(self) -> Actor:
        """The person as the actor of a room's operation."""
        return person_actor(self.services.database, self.person, self.acting)

    async def record(
        self,
        connection: Connection,
        act: str,
        subject: str,
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Keeps in the audit log that the person did this, as `Acting.record` does: last in the transaction."""
        await self.acting.record(
            connection,
            act,
            subject,
            customer_id=self.person.customer_id,
            environment=self.person.environment,
            before=before,
            after=after,
        )

    @property
    def form_of_address(self) -> Form:
        """The parameters of the address as a form, which makes nothing."""
        return Form(self.parameters.pairs, self.say)

    def query(self, name: str) -> str:
        """A parameter of the address as text; empty where it is not given. Those that are no texts are read from `parameters`."""
        return self.parameters.text(name)

    def uuid(self, name: str) -> UUID:
        """A UUID in the path. Raises NotFound for what is none."""
        try:
            return UUID(self.request.path_params[name])
        except ValueError:
            raise NotFound("There is nothing of that name.") from None

    def number(self, name: str) -> int:
        """An id in the path. Raises NotFound for one beyond any there can be."""
        value = int(self.request.path_params[name])
        if value > _HIGHEST:
            raise NotFound("There is nothing of that number.")
        return value

    def say(self, english: str, **values: object) -> str:
        """A text in the language of the page, with `%(name)s` filled in. A literal: catalogues are made of what stands in the code."""
        return self._layout.say(self.language, english, **values)

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """The page of a template, which finds the `form`, the `person` and its `session` among the values."""
        values = {"form": self.form, "understood": self.understood, "session": self.session, **values}
        return self._layout.page(self, template, values, status=status)

    def trouble(self, status: int, said: str) -> Response:
        """The page that says what did not work, with the menu for who is in."""
        session = self.session
        is_in = session is not None and session.person is not None and not session.awaits_second_step
        return self.page("trouble.html", status=status, said=said, is_in=is_in, notice=None)

    def see(self, path: str, notice: str | None = None) -> Response:
        """Sends the browser to another of our pages, which says `notice`."""
        self.notice = notice
        return see(self._layout.base + path, OF_FORMS)

    def require_proof(self) -> None:
        """Has somebody show that it is still them, unless they did a moment ago; then they go on to where they were. Raises NotProved."""
        if not self.person.is_proved:
            raise NotProved

    def begin(self, secret: str) -> None:
        """Has the browser come back in the session of that secret."""
        self.new_cookie = secret

    def end(self) -> None:
        """Has the browser forget its session."""
        self.new_cookie = ""

    def link(self, path: str) -> str:
        """The whole address of a page of ours, to hand on."""
        return by_name(self.services.settings.public_url) + path

    def here(self, **changes: str | int | None) -> str:
        """The address of this page with those parameters changed; None leaves one out."""
        given = {**dict(self.parameters.pairs), **changes}
        query = urlencode({name: value for name, value in given.items() if value not in {None, ""}})
        return self._layout.base + self.request.url.path + (f"?{query}" if query else "")

    def instant(self, at: datetime | None) -> str | None:
        """An instant as files have it, in UTC."""
        return None if at is None else f"{at:%Y-%m-%d %H:%M:%S}"

    async def csv(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[object]] | AsyncIterable[Sequence[object]]
    ) -> Response:
        """A file of that name for spreadsheets, which compute nothing in it; rows are sent as they come. The audit log keeps who took it."""
        async with self.writing() as connection:
            await self.record(connection, "file.exported", name[:_MOST_SUBJECT])
        attached = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
        headers = {**OF_FORMS, **attached}
        return StreamingResponse(_csv(columns, rows), media_type="text/csv", headers=headers)


async def _csv(
    columns: Sequence[str], rows: Iterable[Sequence[object]] | AsyncIterable[Sequence[object]]
) -> AsyncIterator[str]:
    # With the mark by which spreadsheets know UTF-8.
    yield "\ufeff" + _line(columns)
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield _line(row)
    else:
        for row in rows:
            yield _line(row)


def _line(cells: Sequence[object]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(
        [plain_text(cell) if isinstance(cell, str) else "" if cell is None else cell for cell in cells]
    )
    return line.getvalue()
