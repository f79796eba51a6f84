"""The context of a request to a page: what a handler reads and the methods that make its response."""

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
from babel.numbers import get_decimal_symbol
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from largesse.audit.service import Acting, by_person
from largesse.base.amounts import UnreadableAmount, read_amount
from largesse.base.errors import NotFound
from largesse.base.hosts import by_name
from largesse.base.i18n.languages import Language, text
from largesse.base.zones import known_zones
from largesse.customers.actor import Actor, person_actor, record_export
from largesse.customers.principal import Principal
from largesse.customers.security import SecurityService
from largesse.customers.sessions import Person, Session, SignedIn, new_secret, secret_hash
from largesse.customers.sign_in import Origin, SignInSteps
from largesse.customers.sign_in_store import SignInSql
from largesse.customers.staff_roles import StaffMember, StaffRight
from largesse.db.pool import Connection, Database, ReadOnly
from largesse.db.scope import Place
from largesse.web.console.form import Form
from largesse.web.console.layout import DEVICE, NARROW_MENU, Layout, moment_of, short_time, zone_of
from largesse.web.console.page_routes import GUIDES, PARAMETERS, PageRoute
from largesse.web.kit.asgi import client_address
from largesse.web.kit.page_services import PageServices
from largesse.web.kit.pages import csv_lines, see
from largesse.web.kit.query import INT32, query_of
from largesse.web.kit.security import OF_FORMS
from largesse.web.kit.sessions import one_time_token, read_cookie

Asked = ParamSpec("Asked")
Found = TypeVar("Found")
_CHOOSE_FILE = text("Choose a file.")
_EMPTY_FILE = text("The file is empty: it has 0 bytes. Save it again, or choose another.")


class NotProved(Exception):
    """The person must confirm who they are before the request can continue."""


class Users(msgspec.Struct, frozen=True):
    """Those who sign in to some pages: the people of customers to the web application, members of staff to the back office."""

    lasts_s: int
    forbidden: str  # what a page says to a person whose role lacks the right
    database: Database  # has their sessions, and the forms that were answered
    signing_in: SignInSteps[Any]
    security: SecurityService  # changes passwords, second steps and sessions
    sql: SignInSql


class PageContext:
    """A request to a page of the web application or the back office: the session, the posted form, and methods for the response."""

    session: SignedIn | None

    def __init__(
        self,
        request: Request,
        services: PageServices,
        users: Users,
        layout: Layout,
        route: PageRoute,
        *,
        session: SignedIn | None,
        language: Language,
    ) -> None:
        self.request = request
        self.services = services
        self.users = users
        self.route = route
        self.session = session
        self.language = language
        self.form = Form({}, self.say, language)
        self.understood: dict[str, str] = {}  # the amount read from each field, formatted
        self.parameters = query_of(request, PARAMETERS)
        self.files: dict[str, bytes] = {}  # uploaded files by field
        self.file_names: dict[str, str] = {}  # the names that the browser sent, by field
        self.notice: str | None = None  # shown on the next page
        self.cookie = ""  # the browser's session cookie, even if the session has ended
        self.token_of = ""  # the cookie that form tokens of this page are bound to
        self.page_of = ""  # the cookie that the token of the posted form is bound to
        self.new_cookie: str | None = None  # the secret of a new session; empty ends the session
        known = layout.page_cookies.read(request, DEVICE)
        self.device = known if secret_hash(known) else new_secret()
        self.layout = layout
        self.site = layout.root  # the root path of the pages: `/app` or `/office`
        self.base = layout.base  # the path of the public address, a prefix of each page's path; usually empty
        self.routes = layout.routes  # all routes of these pages

    @property
    def person(self) -> Person | StaffMember:
        """The signed-in person. Not for routes with the access ANYONE or SIGNED_IN."""
        raise NotImplementedError

    @property
    def database(self) -> Database:
        """The pool, for reading: `context.database.connection(context.person.scope)`. To write, call an operation of a service."""
        return ReadOnly(self.users.database)

    async def read(
        self,
        look_up: Callable[Concatenate[Connection, Asked], Awaitable[Found]],
        *args: Asked.args,
        **named: Asked.kwargs,
    ) -> Found:
        """Calls a function that reads, with a connection for the person and these arguments."""
        return await self.database.read(self.person.scope, look_up, *args, **named)

    @property
    def place(self) -> str:
        """What the forms of the page apply to, such as a customer. Form tokens contain it. Empty without a person."""
        raise NotImplementedError

    @property
    def actor(self) -> Actor:
        """The person as the actor of an operation."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        """The path and parameters of the request."""
        url = self.request.url
        return url.path + (f"?{url.query}" if url.query else "")

    @property
    def origin(self) -> Origin:
        """The network address, browser and device of the request."""
        request = self.request
        return Origin(
            client_address(request.scope),
            request.headers.get("user-agent", ""),
            request.scope["request_id"],
            self.device,
        )

    @property
    def zone(self) -> tzinfo:
        """The time zone of the pages: the person's choice, otherwise the browser's zone, otherwise UTC."""
        return zone_of(self.request, self.session)

    @property
    def times_in(self) -> tzinfo:
        """The time zone of the times in a form: the one of the page on which they were typed. The person's own may have changed since."""
        typed = self.form["times_in"]
        return ZoneInfo(typed) if typed in known_zones() else self.zone

    @property
    def can_mail(self) -> bool:
        """Whether a mail server is set. Without one, pages show the links that would be mailed."""
        return self.services.settings.smtp_url is not None

    @property
    def form_of_address(self) -> Form:
        """The parameters of the address as a form that changes nothing."""
        return Form(self.parameters.pairs, self.say, self.language)

    def query(self, name: str) -> str:
        """Returns a parameter of the address as text; empty if it is missing. `parameters` has numbers and days."""
        return self.parameters.text(name)

    def uuid(self, name: str) -> UUID:
        """Returns a UUID in the path. Raises NotFound for anything else."""
        try:
            return UUID(self.request.path_params[name])
        except ValueError:
            raise NotFound("There is nothing with that name.") from None

    def number(self, name: str, *, highest: int = INT32) -> int:
        """Returns an id in the path. Raises NotFound for one that the database cannot hold."""
        value = int(self.request.path_params[name])
        if value > highest:
            raise NotFound("There is nothing with that number.")
        return value

    def say(self, english: str, **values: object) -> str:
        """Returns a text in the language of the page, with `%(name)s` filled in. Pass a literal: the catalogues are extracted from the code."""
        return self.layout.say(self.language, english, **values)

    def ngettext(self, singular: str, plural: str, count: int, **values: object) -> str:
        """Returns the singular or plural of a text, translated like `say`. `%(count)s` is the number."""
        return self.layout.ngettext(self.language, singular, plural, count, **values)

    def time(self, at: datetime) -> str:
        """Returns an instant for a sentence, in the language and the time zone of the person: `20 Nov 2026, 09:00`."""
        return short_time(at, self.language, self.zone)

    def page(self, template: str, *, status: int | None = None, **values: Any) -> Response:
        """Returns the page of a template: with status 422 if the form has errors, unless another is given.

        Its values include the `form`, the `person` and the `session`.
        """
        status = status or (422 if self.form.errors else 200)
        return self.layout.page(template, self.language, self.zone, self.shown(values), status=status)

    def shown(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values of a page, with what every page says about the request and its person."""
        layout, session, path = self.layout, self.session, self.request.url.path
        person = session.person if session else None
        is_staging = isinstance(person, Person) and person.environment == "staging"
        menu = layout.menu(self.language, person, path)
        current = next(
            (item.path.removeprefix(self.base) for _, group in menu for item in group if item.is_current), ""
        )
        return {
            "form": self.form,
            "understood": self.understood,
            "session": session,
            "person": person,
            "whose": person.customer_name if isinstance(person, Person) else layout.name,
            "role_name": self.say(layout.role_names[person.role]) if person and layout.role_names else "",
            "is_staging": is_staging,
            "reference": layout.reference(is_staging=is_staging),
            "path": path,
            "here": self.here,
            "title": self.say(self.route.title) if self.route.title else "",
            "menu": menu,
            "guide": GUIDES.get(current, layout.guide),
            "is_menu_narrow": read_cookie(self.request, NARROW_MENU) == "1",
            "notice": session.notice if session else None,
            "token": lambda: one_time_token(self.services.vault, self.token_of, self.place),
            "say": self.say,
            **values,
        }

    def trouble(self, status: int, said: str, *, is_uncertain: bool = False) -> Response:
        """Returns an error page, with the menu if a person is signed in. `is_uncertain` if the request may have been carried out."""
        session = self.session
        is_in = session is not None and session.person is not None and not session.awaits_second_step
        # A link may lead to a page of the other environment, or of another customer of the person.
        sought = self.address if self.route.method == "GET" and self.route.is_of_customer else ""
        values = {
            "is_in": is_in,
            "code": status,
            "is_form": self.route.method != "GET",
            "sought": sought,
            "notice": None,
        }
        return self.page("trouble.html", status=status, said=said, is_uncertain=is_uncertain, **values)

    def own_path(self, given: str) -> str:
        """Returns `given` if it is the path of one of these pages, otherwise the root path."""
        return own_path(given, self.site)

    def see(self, path: str, notice: str | None = None) -> Response:
        """Redirects to one of these pages, which shows `notice`."""
        self.notice = notice
        return see(self.base + path, OF_FORMS)

    def require_proof(self) -> None:
        """Raises NotProved unless the person recently confirmed who they are. The guard then asks them, and repeats the request."""
        if not self.person.is_proved:
            raise NotProved

    def begin(self, secret: str) -> None:
        """Starts the session with this secret in the browser."""
        self.new_cookie = secret

    def end(self) -> None:
        """Ends the session in the browser."""
        self.new_cookie = ""

    def link(self, path: str) -> str:
        """Returns the full address of one of these pages."""
        return by_name(self.services.settings.public_url) + path

    def here(self, **changes: str | int | None) -> str:
        """Returns the address of this page with those parameters changed; None removes one."""
        given = {**dict(self.parameters.pairs), **changes}
        query = urlencode({name: value for name, value in given.items() if value not in {None, ""}})
        return self.base + self._own_page + (f"?{query}" if query else "")

    @property
    def _own_page(self) -> str:
        """The path of this page. A form without a page of its own, such as `/app/orders/views`, shows the page above it again."""
        path, route = self.request.url.path, self.route.path
        if self.route.method == "POST":
            pages = {page.path for page in self.routes if page.method == "GET"}
            while route and route not in pages:
                path, route = path.rpartition("/")[0], route.rpartition("/")[0]
        return path

    def moment(self, at: datetime) -> str:
        """Returns an instant with seconds, in the language and the time zone of the person."""
        return moment_of(at, self.language, self.zone)

    def instant(self, at: datetime | None) -> str | None:
        """Returns an instant for a file, in UTC."""
        return None if at is None else f"{at:%Y-%m-%d %H:%M:%S}"

    @property
    def csv_mark(self) -> str:
        """The decimal mark of CSV files. Where it is a comma, semicolons separate the cells."""
        return "."

    async def csv(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[object]] | AsyncIterable[Sequence[object]]
    ) -> Response:
        """Returns a CSV file without formulas for spreadsheets. Streams the rows, and records the download.

        `columns` are shown as they are. Where the cells are in the person's language, pass the columns through `say`.
        """
        right = self.route.who
        await record_export(self.actor, name, right if isinstance(right, StaffRight) else None)
        attached = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
        headers = {**OF_FORMS, **attached}
        return StreamingResponse(csv_lines(columns, rows, self.csv_mark), media_type="text/csv", headers=headers)


class RequestContext(PageContext):
    """A request to a page of the web application."""

    session: Session | None

    @property
    def person(self) -> Person:
        """The person at the chosen customer. Not for routes with the access ANYONE or SIGNED_IN."""
        assert self.session is not None, "the guard requires a session"
        assert self.session.person is not None, "the guard requires a customer"
        return self.session.person

    @property
    def csv_mark(self) -> str:
        """The decimal mark of the person's language: their spreadsheet reads a file with another mark as one column of text."""
        return str(get_decimal_symbol(self.language.locale))

    @property
    def customer(self) -> Place:
        """The customer and the environment that the pages show."""
        return self.person.place

    @property
    def place(self) -> str:
        """The membership and the environment that the forms of the page apply to; empty without a person."""
        person = self.session.person if self.session else None
        return f"{person.user_id}-{person.environment}" if person else ""

    @property
    def principal(self) -> Principal:
        """The person as a principal, for permission checks and reads."""
        return self.person.principal

    @property
    def actor(self) -> Actor:
        """The person as the actor of an operation."""
        person = self.person
        who = by_person(person.user_id, person.email, self.origin.address, self.request.scope["request_id"])
        return person_actor(self.services.database, person, Acting(who, self.services.chains))


def typed_amount(context: PageContext, field: str, currency: str) -> int:
    """Returns the amount in a field of the form, in minor units; 0, with an error in the form, if it is not above zero.

    Stores the amount in `context.understood`, so that the page can show below the field how it was read.
    """
    try:
        amount_minor = read_amount(context.form[field], currency, context.language)
    except UnreadableAmount as unreadable:
        context.form.error(field, context.say(unreadable.english, **unreadable.values))
        return 0
    context.understood[field] = context.language.amount(amount_minor, currency)
    return amount_minor


def note_no_file(context: PageContext) -> None:
    """Adds the error of a form whose file was not chosen, or has 0 bytes."""
    context.form.error("file", context.say(_EMPTY_FILE if "file" in context.files else _CHOOSE_FILE))


def own_path(given: str, root: str) -> str:
    """Returns `given` if it is the path of a page below `root`, otherwise `root`."""
    is_ours = given == root or given.startswith((f"{root}/", f"{root}?"))
    is_plain = given.isascii() and given.isprintable() and not any(one in given for one in ("\\", "#", "//", ".."))
    return given if is_ours and is_plain and len(given) < 1_000 else root
