"""Checks before a handler: the session, the rights, and that a posted form comes from our page and is new.

Makes every route of the web application from the table, so that each has a guard. `Guard` also serves the back office.
"""

import asyncio
from contextlib import nullcontext, suppress
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from largesse.base.cooperative import Turn
from largesse.base.errors import NotFound, Problem, TooManyRequests, Unauthorized, Unavailable
from largesse.base.i18n.languages import text
from largesse.customers.access import AccessChanged
from largesse.customers.actor import ReadAgain
from largesse.customers.form_posts import Post, StillUnderWay, answer_post, take_back_post, take_post
from largesse.customers.sessions import SignedIn, find_session_id, new_secret, secret_hash, set_notice
from largesse.customers.sign_in_store import PEOPLE
from largesse.db.pool import DATABASE_AWAY, CommitLost
from largesse.db.scope import LOOKUP
from largesse.web.console.context import NotProved, PageContext, RequestContext, Users
from largesse.web.console.form import CHANGED, Form
from largesse.web.console.layout import DEVICE, FORMS, SESSION, Layout
from largesse.web.console.page_routes import Access, PageRoute
from largesse.web.console.routes import ROUTES
from largesse.web.console.sign_in import MOST_PROOF_BYTES, MOST_PROOF_FIELDS, NOT_CARRIED, ask_first, take_proof
from largesse.web.kit.body import BodyShare, TooManyBodies
from largesse.web.kit.forms import BadForm, PostedForm, form_parser
from largesse.web.kit.page_services import PageServices
from largesse.web.kit.pages import guarded
from largesse.web.kit.problems import TooLarge, headers_of, problem_type
from largesse.web.kit.refusal_log import ACTS_FOR
from largesse.web.kit.sessions import OneTimeToken, read_one_time_token

_DAY_S, _YEAR_S = 24 * 3600, 365 * 24 * 3600
# How much is read of a form with files whose session has ended. The next page contains the typed fields, but no files.
_LOST_BYTES = 1024 * 1024
# The answer to an invalid form of a signed-in person takes at least this long. Two forms at once make at most 20 a second.
_INVALID_FORM_S = 0.1
_MOST_READS = 5  # of a handler that finds again and again that others have changed what it read

_ENDED = text(
    "This page was open for too long, or you signed out elsewhere. Nothing was changed: go back and try again."
)
_SWITCHED = text("In another tab you switched the company or test mode. Nothing was changed. Open the page again.")
_CHANGED = text("Your rights have changed since you opened the page. Nothing was changed. Open it again.")
_UNDER_WAY = text("Your request may still be running. Check in a moment whether it is done before you send it again.")
_FORBIDDEN = text("Your role does not include this. Ask an administrator of your company.")
_NOTHING = text("This page does not exist, or you do not have access to it.")
_GONE = text("This does not exist any more, or you do not have access to it. Nothing was changed.")
_TOO_LARGE = text("What you sent is too large. Nothing was changed: go back, and send less at once.")
_BUSY = text("Other files of yours are still being read. Wait a moment and try again.")
_TROUBLE = text("Something went wrong on our side. Nothing was lost: try again in a moment.")
_TEXTS = {TooManyBodies: _BUSY, NotFound: _NOTHING, TooLarge: _TOO_LARGE}


class _Answer(msgspec.Struct):
    """The answer to a form, stored for repeats."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    notice: str | None
    path: str = ""  # empty if an earlier release stored the answer


class Guard:
    """Guards the handler of one route, which gets a context of the class `context`."""

    def __init__(
        self, services: PageServices, users: Users, layout: Layout, route: PageRoute, context: type[PageContext]
    ) -> None:
        self._services = services
        self._users = users
        self._layout = layout
        self._route = route
        self._context = context

    def route(self) -> Route:
        """Returns the guarded route."""
        expected = {
            BadForm: lambda request: self._error_page(request, 403, _ENDED),
            StillUnderWay: lambda request: self._error_page(request, 409, _UNDER_WAY, is_uncertain=True),
        }
        endpoint = guarded(self._answer, self._services.timeouts, self._problem_page, expected, name=self._route.path)
        return Route(self._route.path, endpoint, methods=[self._route.method])

    async def _answer(self, request: Request) -> Response:
        cookie = self._layout.page_cookies.read(request, SESSION)
        session = await self._users.signing_in.find(cookie) if cookie else None
        context = self._new_context(request, session)
        context.cookie = cookie
        # All tabs share the cookie of an ended session. A new form cookie replaces those of tabs that are opened at the same moment.
        context.token_of = cookie if secret_hash(cookie) else self._layout.page_cookies.read(request, FORMS)
        request.state.context = context  # error pages read it
        if session is None and self._route.method == "POST" and self._route.is_of_customer:
            return await self._take_lost(context)
        if (turned_away := self._turn_away(context)) is not None:
            return turned_away
        try:
            if self._route.method != "GET":
                response = await self._take(context)
                self._set_session(context, response)
                return response
            return await self._show(context)
        except NotProved:
            return await ask_first(context)
        except (AccessChanged, Unauthorized):
            context.session = await self._users.signing_in.find(cookie)
            return self._lost(context) or self._turn_away(context) or context.trouble(409, context.say(_CHANGED))
        finally:
            # Only a garbage collection frees a context, because its page refers to it. A form may have megabytes.
            context.form, context.files = Form({}, context.say), {}

    async def _show(self, context: PageContext) -> Response:
        session = context.session
        fresh = "" if context.token_of else new_secret()
        context.token_of = context.token_of or fresh
        response = await self._route.handler(context)
        if session and session.notice and response.status_code == 200:
            await self._note(context, None)
        if fresh:
            self._layout.page_cookies.give(response, FORMS, fresh, _DAY_S)
        return response

    def _new_context(self, request: Request, session: SignedIn | None) -> PageContext:
        request.scope[ACTS_FOR] = session.person if session else None  # the refusal log reads it
        language = self._layout.language(request, session)
        return self._context(
            request, self._services, self._users, self._layout, self._route, session=session, language=language
        )

    def _turn_away(self, context: PageContext) -> Response | None:
        """Returns the response to a request that is not allowed; None if it is allowed."""
        session, who = context.session, self._route.who
        if who is Access.ANYONE:
            return None
        if session is None:
            if self._route.method != "GET":
                return context.trouble(401, context.say(_ENDED))
            return context.see(f"{context.site}/sign-in?" + urlencode({"next": context.address}))
        if who is Access.ENTERING:
            return None
        if session.awaits_second_step:
            return context.see(f"{context.site}/second-step?" + urlencode({"next": context.address}))
        if who is Access.SIGNED_IN:
            return None
        if session.person is None:
            is_page = self._route.method == "GET"
            return context.see("/app/customers" + (f"?{urlencode({'next': context.address})}" if is_page else ""))
        if session.lacks_second_step and not self._route.before_second_step:
            return context.see(f"{context.site}/security")
        if session.person.role not in self._route.roles:
            return context.trouble(403, context.say(self._users.forbidden))
        return None

    async def _take(self, context: PageContext) -> Response:
        """Passes a form to the handler once. A repeat gets the same response. Raises BadForm, StillUnderWay."""
        sender = context.session.person_id if context.session else context.origin.address
        with self._services.body_memory.share(("person", sender)) as share:
            try:
                token = await self._read_form(context, share)
            except BadForm:
                async with self._turn(context):
                    await asyncio.sleep(_INVALID_FORM_S)
                raise
            async with self._turn(context):
                return await self._hand_over(context, token)

    def _turn(self, context: PageContext) -> Turn[tuple[str, int]] | nullcontext[None]:
        """Returns a turn for the form. A signed-in person has at most two forms handled at once; further ones wait."""
        if context.session is None:
            return nullcontext()
        return self._services.form_turns.turn((context.site, context.session.person_id))

    async def _read_form(
        self, context: PageContext, share: BodyShare, *, most_bytes: int | None = None
    ) -> OneTimeToken:
        """Reads the form and returns its token. Raises BadForm before it reads the rest if the token is not valid."""
        route = self._route
        # The form may contain the fields of step-up too.
        limits = msgspec.structs.replace(
            route.limits, most_bytes=(most_bytes or route.limits.most_bytes) + MOST_PROOF_BYTES
        )
        parser = form_parser(context.request, route.most_fields + MOST_PROOF_FIELDS, takes_files=route.takes_files)
        posted = PostedForm(context.request, limits, share, parser=parser)
        with self._services.timeouts.suspended():
            given = await posted.token()
        token = self._read_token(context, given)
        if token is None:
            raise BadForm
        if route.before_reading is not None and context.place and context.place == token.place:
            await route.before_reading(context)
        with self._services.timeouts.suspended():
            await posted.read(self._services.cooperative, context.token_of)
        context.form = Form(posted.fields, context.say, context.language)
        context.files, context.file_names = posted.files, posted.file_names
        return token

    def _read_token(self, context: PageContext, given: str) -> OneTimeToken | None:
        """Returns the content of a form's token; None if it is not valid. Accepts tokens of the browser's previous session.

        Such a token is only valid for the person who was signed in then: nobody else can submit a customer's form with it.
        """
        before = self._layout.page_cookies.read(context.request, FORMS) if self._route.is_of_customer else ""
        for cookie in filter(None, (context.token_of, before)):
            if (token := read_one_time_token(self._services.vault, cookie, given)) is not None:
                context.page_of = cookie
                return token
        return None

    async def _session_of_page(self, context: PageContext, session: SignedIn) -> int:
        """Returns the id of the session in which the page of the form was opened. Raises BadForm."""
        if context.page_of == context.token_of:
            return session.id
        session_id = await find_session_id(self._users.database, context.page_of, self._users.sql)
        if session_id is None:
            raise BadForm
        return session_id

    async def _take_lost(self, context: PageContext) -> Response:
        """Answers a form whose session has ended with a page that contains the typed fields and offers to sign in."""
        context.token_of = context.cookie or context.token_of
        with suppress(BadForm, TooLarge), self._services.body_memory.share(("person", context.origin.address)) as share:
            await self._read_form(context, share, most_bytes=_LOST_BYTES if self._route.takes_files else None)
        return self._lost(context) or context.trouble(401, context.say(_ENDED))

    def _lost(self, context: PageContext) -> Response | None:
        """Returns the page that contains the typed fields; None if nothing was typed, a file came with them, or the session is still valid."""
        typed = context.form.without(NOT_CARRIED)
        if context.session is not None or not typed.fields or context.files or not context.page_of:
            return None
        has_secret = len(typed.fields) < len(context.form.fields) - 1
        response = context.page("lost.html", status=401, carried=typed.fields, has_secret=has_secret)
        self._layout.page_cookies.give(response, FORMS, context.page_of, _DAY_S)
        return response

    async def _hand_over(self, context: PageContext, token: OneTimeToken) -> Response:
        """Passes the form to the handler, once. Raises StillUnderWay."""
        # Reading the form may take long enough for the session to end.
        context.session = context.session and await self._users.signing_in.find(context.cookie)
        if self._route.is_of_customer and (lost := self._lost(context)) is not None:
            return lost
        if (turned_away := self._turn_away(context)) is not None:
            return turned_away
        if context.session is None:
            return await self._route.handler(context)
        post = Post(await self._session_of_page(context, context.session), token.mark)
        stored = await take_post(self._users.database, post, self._services.timeouts.suspended, self._users.sql)
        if stored is not None:
            return await self._repeat(context, post, stored)
        is_done = False
        try:
            response = await self._carry_out(context, token.place)
            is_done = response.status_code < 400 and not isinstance(response, StreamingResponse)
        except (CommitLost, asyncio.CancelledError):  # cancelled: by the time-out of the request, perhaps during COMMIT
            is_done = True  # perhaps: a repeat must not do it twice
            raise
        finally:
            if not is_done:
                await take_back_post(self._users.database, post, self._users.sql)
        if is_done:
            with suppress(*DATABASE_AWAY):  # this answer still says that it is done
                await self._store(context, post, response)
        return response

    async def _carry_out(self, context: PageContext, place: str) -> Response:
        """Calls the handler, again if somebody changed what it had read. Refuses a form of another place, and asks for step-up where it is due."""
        if self._route.is_of_customer and context.place != place:
            return self._switched(context)
        if (refusal := await take_proof(context)) is not None:
            return refusal
        if self._route.step_up:
            context.require_proof()
        # The handler of a form that changes what somebody else may change or end at the same moment reads the object, merges the form with it
        # (`Form.keep_others`), and calls an operation with what it has `seen`. The operation locks the object, and raises ReadAgain if it has
        # changed since.
        typed = context.form.fields
        for _ in range(_MOST_READS):
            try:
                return await self._route.handler(context)
            except ReadAgain:
                context.form = Form(typed, context.say, context.language)
        return context.trouble(409, context.say(CHANGED))

    def _switched(self, context: PageContext) -> Response:
        """Returns the page about a form of another company or environment. Contains the typed fields, unless a file came with them."""
        carried = [] if context.files else context.form.without(NOT_CARRIED).fields
        if not carried:
            return context.trouble(409, context.say(_SWITCHED))
        return context.page("switched.html", status=409, action=context.address, carried=carried, notice=None)

    async def _store(self, context: PageContext, post: Post, response: Response) -> None:
        if context.notice:
            await self._note(context, context.notice)
        headers, path = list(response.headers.items()), context.request.url.path
        answer = _Answer(response.status_code, headers, bytes(response.body), context.notice, path)
        sealed = self._services.vault.forms.seal(msgspec.msgpack.encode(answer), post.about)
        await answer_post(self._users.database, post, sealed, self._users.sql)

    async def _repeat(self, context: PageContext, post: Post, stored: bytes) -> Response:
        answer = msgspec.msgpack.decode(self._services.vault.forms.open(stored, post.about), type=_Answer)
        if answer.path not in {"", context.request.url.path}:
            raise BadForm  # the sender would take it for the answer to another form
        if answer.notice:
            await self._note(context, answer.notice)
        return Response(answer.body, answer.status, dict(answer.headers))

    async def _note(self, context: PageContext, notice: str | None) -> None:
        assert context.session is not None, "only a session has notices"
        async with self._users.database.connection(LOOKUP) as connection:
            await set_notice(connection, context.session.id, notice, self._users.sql)

    def _set_session(self, context: PageContext, response: Response) -> None:
        if context.new_cookie:
            self._layout.page_cookies.give(response, SESSION, context.new_cookie, self._users.lasts_s)
            self._layout.page_cookies.give(response, DEVICE, context.device, _YEAR_S)
        is_entering = context.session and context.session.awaits_second_step
        if context.new_cookie is not None and context.cookie and not is_entering:
            # Lets forms in other tabs work again once the same person has signed in. A session that awaits its second step has none.
            self._layout.page_cookies.give(response, FORMS, context.cookie, _DAY_S)
        if context.new_cookie == "":
            self._layout.page_cookies.take(response, SESSION)

    def _error_page(self, request: Request, status: int, said: str, *, is_uncertain: bool = False) -> Response:
        context = self._context_of(request)
        return context.trouble(status, context.say(said), is_uncertain=is_uncertain)

    def _context_of(self, request: Request) -> PageContext:
        context: PageContext | None = getattr(request.state, "context", None)
        return context or self._new_context(request, None)

    def _problem_page(self, request: Request, problem: Problem) -> Response:
        context, status = self._context_of(request), problem_type(type(problem)).status
        texts = _TEXTS if request.method == "GET" or context.session is None else _TEXTS | {NotFound: _GONE}
        said = context.say(next((said for kind, said in texts.items() if isinstance(problem, kind)), _TROUBLE))
        if isinstance(problem, TooManyRequests) and not isinstance(problem, TooManyBodies):
            said = context.ngettext(
                "Too many attempts. Wait %(count)s minute and try again.",
                "Too many attempts. Wait %(count)s minutes and try again.",
                max(1, round(problem.retry_after_s / 60)),
            )
        is_uncertain = isinstance(problem, Unavailable) and problem.is_uncertain and request.method != "GET"
        response = context.trouble(status, context.say(_UNDER_WAY) if is_uncertain else said, is_uncertain=is_uncertain)
        response.headers.update(headers_of(problem))
        return response


def people(services: PageServices) -> Users:
    """Returns the people of customers, who sign in to the web application."""
    return Users(
        lasts_s=14 * _DAY_S,
        forbidden=_FORBIDDEN,
        database=services.database,
        signing_in=services.signing_in,
        security=services.security,
        sql=PEOPLE,
    )


def console_pages(services: PageServices) -> list[BaseRoute]:
    """Returns the routes under `/app`."""
    layout, users = Layout(services.settings, ROUTES), people(services)
    guards = [Guard(services, users, layout, route, RequestContext) for route in ROUTES]
    return [*layout.assets.routes(), *(guard.route() for guard in guards)]
