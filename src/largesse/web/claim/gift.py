"""The pages of a gift: the code, the link and the claim; then, for the browser with its session, the choice and the address."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from largesse.base.confidential import Confidential
from largesse.base.email import EmailError, pasted_email
from largesse.base.errors import InvalidRequest, NotFound, TooManyRequests
from largesse.base.text import trimmed
from largesse.base.zones import last_whole_day
from largesse.catalogue.model import Product
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.fulfilment.gifts import THANKFUL, ClaimedGift, GiftStep
from largesse.lines.attempts import Attempt, read_typed_code, read_typed_pin
from largesse.lines.claiming import Claim, Outcome
from largesse.lines.states import LineKey
from largesse.lines.store import Deadline
from largesse.notes.model import MOST_CHARACTERS, NoteTooLong, NoteWithLink, read_note
from largesse.web.claim.addresses import address_fields, check_address
from largesse.web.claim.rendering import HEADERS, Layout, chosen_by_switch, chosen_tag
from largesse.web.kit.asgi import client_address
from largesse.web.kit.forms import BadForm, read_form, require_own_site
from largesse.web.kit.page_services import PageServices
from largesse.web.kit.pages import see
from largesse.web.kit.sessions import form_key, give_cookie, is_form_of, open_cookie, read_cookie, seal_cookie

_WITH_SIGNS = re.compile(
    r"([\w/-]*[\w-])[^\w-]+", re.ASCII
)  # a path with stray signs behind it, such as a sentence's full stop or a browser's slash
COOKIE = "gift"  # holds the session of a claimed gift, and is sent only to the pages of that gift
LASTS = timedelta(hours=1)


class Session(Confidential, frozen=True):
    """A browser's access to one line. `handle` names the line in addresses and reveals nothing."""

    line: LineKey
    handle: str
    cookie: str


def new_session(vault: Vault, environment: str, line: LineKey, now: datetime) -> Session:
    """Returns a session that starts `now`."""
    cookie = seal_cookie(vault, _purpose(environment), b"%d/%d/%d" % line, now + LASTS)
    return Session(line, vault.handles.name(_gift(line)), cookie)


def read_session(vault: Vault, environment: str, cookie: str, handle: str, now: datetime) -> Session | None:
    """Returns the session of a cookie; None if it has ended, is of another gift, or is not ours."""
    about = open_cookie(vault, _purpose(environment), cookie, now)
    if about is None:
        return None
    parts = about.split(b"/")
    if len(parts) != len(LineKey._fields):  # from a release whose cookies did not name the customer
        return None
    line = LineKey(*map(int, parts))
    return Session(line, handle, cookie) if vault.handles.is_name(handle, _gift(line)) else None


def _gift(line: LineKey) -> bytes:
    return b"gift/%d/%d" % (line.order_id, line.number)


def _purpose(environment: str) -> str:
    return f"claim-session/{environment}"


class PinEntry:
    """The pages that lead to a claimed gift."""

    def __init__(self, services: PageServices, layout: Layout) -> None:
        self._services = services
        self._layout = layout

    async def type_code(self, request: Request) -> Response:
        """Shows the form for a code and its PIN."""
        return self._layout.page(request, "enter.html")

    async def claim_typed(self, request: Request) -> Response:
        """Claims by a typed code."""
        form = await read_form(request)
        return await self._claim(request, read_typed_code(form.get("code", "")), None, form)

    async def lost(self, request: Request) -> Response:
        """Redirects to the address without the stray signs behind it. Raises NotFound if there are none."""
        path = request.path_params.get("rest") or request.path_params["token"]
        if not (tidy := _WITH_SIGNS.fullmatch(path)):
            raise NotFound("There is nothing at this address.")
        return see(f"{self._layout.base}/claim/{tidy[1]}", HEADERS)

    async def link(self, request: Request) -> Response:
        """Shows the page of a claim link: the wrapped gift and the form for its PIN. Raises NotFound."""
        if _WITH_SIGNS.fullmatch(request.path_params["token"]):
            return await self.lost(request)
        line, progress = await self._services.claiming.find(request.path_params["token"])
        deadline = await self._services.claiming.deadline(line.key)
        return await self._layout.page_of(
            request,
            "link.html",
            line,
            wrapping=line.wrapping_key,
            sender=line.from_name,
            recipient=line.recipient_name,
            state=progress.state,
            **_until(line.country, deadline),
        )

    async def claim_link(self, request: Request) -> Response:
        """Claims by the code of a link."""
        form = await read_form(request)
        try:
            code, customer_id = self._services.vault.code_of_token(request.path_params["token"])
        except DecryptionFailed:
            return await self._claim(request, None, None, form)
        return await self._claim(request, code, customer_id, form)

    async def opened(self, request: Request) -> Response:
        """Records that a person used the page of a link."""
        require_own_site(request)
        await self._services.claiming.open(request.path_params["token"])
        return Response(status_code=204, headers=HEADERS)

    async def reminders(self, request: Request) -> Response:
        """Asks whether to end the reminders of a gift. Raises NotFound."""
        line, _ = await self._services.claiming.find(request.path_params["token"])
        ends = not await self._services.claiming.gets_reminders(line)
        return await self._layout.page_of(request, "reminders.html", line, ended=ends)

    async def end_reminders(self, request: Request) -> Response:
        """Ends the reminders of a gift. The page's form posts here, and so do mail programs (RFC 8058). Raises NotFound."""
        require_own_site(request)
        line = await self._services.claiming.stop_reminders(request.path_params["token"])
        return await self._layout.page_of(request, "reminders.html", line, ended=True)

    async def _claim(
        self, request: Request, code: bytes | None, customer_id: int | None, form: Mapping[str, str]
    ) -> Response:
        host = client_address(request.scope) or ""
        attempt = Attempt(code, read_typed_pin(form.get("pin", "")), host, customer_id)
        claim = await self._services.claiming.claim(attempt, chosen_tag(request))
        if claim.outcome is Outcome.REFUSED:
            return self._layout.page(request, "problem.html", status=403, problem="refused")
        if claim.outcome is Outcome.SLOWED:
            raise TooManyRequests("Too many wrong codes and PINs came from your network.", retry_after_s=claim.wait_s)
        if claim.outcome is Outcome.WITHDRAWN:
            assert claim.line is not None, "code and PIN were right"
            deadline = await self._services.claiming.deadline(claim.line)
            customer_id = claim.line.customer_id
            return await self._layout.page_for(
                request, "withdrawn.html", customer_id, status=410, lapsed=deadline.lapsed
            )
        return await self._begin(request, claim)

    async def _begin(self, request: Request, claim: Claim) -> Response:
        """Starts a session for the claimed gift. If it was claimed before, the page says so."""
        assert claim.line is not None, "code and PIN were right"
        assert claim.at is not None, "code and PIN were right"
        environment = self._services.settings.environment
        session = new_session(self._services.vault, environment, claim.line, claim.at)
        if claim.outcome is Outcome.CLAIMED:
            response = self._layout.see_gift(session.handle, "#open")
        else:
            address = self._layout.gift_address(session.handle)
            customer_id = claim.line.customer_id
            response = await self._layout.page_for(request, "again.html", customer_id, status=409, gift_address=address)
        give_cookie(
            response,
            COOKIE,
            session.cookie,
            lasts_s=int(LASTS.total_seconds()),
            path=self._layout.gift_address(session.handle),
            is_secure=self._layout.is_secure,
            same_site="strict",
        )
        return response


class GiftPages:
    """The page of a claimed gift, and its forms."""

    def __init__(self, services: PageServices, layout: Layout) -> None:
        self._services = services
        self._layout = layout

    async def show(self, request: Request) -> Response:
        """Shows the gift."""
        if (found := await self._claimed(request)) is None:
            return self._layout.ended(request)
        return await self._show(request, *found)

    async def ask(self, request: Request) -> Response:
        """Asks whether a product of the collection is the one. It has an address of its own, so that people can go back and change the language."""
        if (found := await self._claimed(request)) is None:
            return self._layout.ended(request)
        chosen = _chosen(found[1], request.query_params)
        if chosen is None:
            return await self._not_offered(request, *found, request.query_params)
        return await self._show(request, *found, template="confirm.html", chosen=chosen)

    async def show_again(self, request: Request) -> Response:
        """Shows the gift when a browser asks for the address of a form, as it does after a change of language on a form with errors."""
        language = chosen_by_switch(request)
        return self._layout.see_gift(request.path_params["handle"], f"?lang={language}" if language else "")

    async def choose(self, request: Request) -> Response:
        """Chooses a product of the collection, once it is confirmed."""
        session, form = await self._posted(request)
        gift = await self._services.gifts.read(session.line)
        if gift is None:
            return self._layout.see_gift(session.handle)
        chosen = _chosen(gift, form)
        if chosen is None:
            return await self._not_offered(request, session, gift, form)
        if form.get("sure") != "yes":
            return self._layout.see_gift(session.handle, f"/choose?product={chosen.id}")
        await self._services.gifts.choose(session.line, chosen.id, chosen_tag(request))
        return self._layout.see_gift(session.handle, "#open")

    async def address(self, request: Request) -> Response:
        """Saves the delivery address, or the corrected one of a parcel that came back. With errors, shows the form again."""
        session, form = await self._posted(request)
        gift = await self._services.gifts.read(session.line)
        if gift is None or not (gift.step is GiftStep.ADDRESS or gift.may_correct_address):
            return self._layout.see_gift(session.handle)
        checked = check_address(gift.line.country, form)
        errors = dict(checked.errors)
        asks_email = gift.step is GiftStep.ADDRESS and not gift.has_email
        email = _typed_email(form, errors, is_required=False) if asks_email else None
        if errors:
            typed = {**checked.address, "email": form.get("email", "")}
            return await self._show(request, session, gift, status=422, typed=typed, errors=errors)
        if gift.may_correct_address:
            await self._services.gifts.correct_address(session.line, checked.address)
        else:
            await self._services.gifts.deliver_to(session.line, checked.address, email, chosen_tag(request))
        return self._layout.see_gift(session.handle)

    async def email(self, request: Request) -> Response:
        """Saves the e-mail address to which the voucher is sent once it arrives."""
        session, form = await self._posted(request)
        errors: dict[str, str] = {}
        email = _typed_email(form, errors, is_required=True)
        if email is None:
            gift = await self._services.gifts.read(session.line)
            if gift is None:
                return self._layout.see_gift(session.handle)
            typed = {"email": form.get("email", "")}
            return await self._show(request, session, gift, status=422, typed=typed, errors=errors)
        await self._services.gifts.tell(session.line, email, chosen_tag(request))
        return self._layout.see_gift(session.handle)

    async def thank(self, request: Request) -> Response:
        """Saves the recipient's thank-you note, or shows the form again with its error."""
        session, form = await self._posted(request)
        gift = await self._services.gifts.read(session.line)
        if gift is None or gift.note is not None or gift.step not in THANKFUL:
            return self._layout.see_gift(session.handle)
        if not gift.may_thank:  # notes were turned off while the recipient wrote one
            typed = {"note": form.get("note", "")}
            return await self._show(request, session, gift, status=409, typed=typed, errors={"note": "off"})
        try:
            note = read_note(form.get("note", ""))
            wrong = "" if note else "required"
        except InvalidRequest as refused:
            note, wrong = "", _WRONG_NOTES.get(type(refused), "invalid")
        if wrong:
            typed = {"note": form.get("note", ""), "name": gift.line.recipient_name or ""}
            return await self._show(request, session, gift, status=422, typed=typed, errors={"note": wrong})
        await self._services.gifts.thank(session.line, note)
        return self._layout.see_gift(session.handle, "#thanks")

    async def _not_offered(
        self, request: Request, session: Session, gift: ClaimedGift, values: Mapping[str, str]
    ) -> Response:
        """Shows the gift, and says so if a product can no longer be chosen."""
        if gift.step is not GiftStep.CHOOSE or not values.get("product"):
            return await self.show_again(request)
        return await self._show(request, session, gift, status=409, errors={"product": "gone"})

    async def _show(
        self,
        request: Request,
        session: Session,
        gift: ClaimedGift,
        *,
        template: str = "gift.html",
        status: int = 200,
        typed: Mapping[str, str] | None = None,
        errors: Mapping[str, str] | None = None,
        **values: Any,
    ) -> Response:
        is_form = gift.step is GiftStep.ADDRESS or gift.may_correct_address
        expires_at = gift.progress.expires_at
        if gift.step is GiftStep.EXPIRED and expires_at is not None and expires_at > await self._services.gifts.now():
            expires_at = None  # it ended early, as its recipient's address was erased
        return await self._layout.page_of(
            request,
            template,
            gift.line,
            status=status,
            wrapping=gift.line.wrapping_key,
            sender=gift.line.from_name,
            gift=gift,
            step=gift.step.name.lower(),
            expires_on=None
            if expires_at is None
            else last_whole_day(expires_at, gift.line.country) + timedelta(days=1),
            gift_address=self._layout.gift_address(session.handle),
            form_key=form_key(self._services.vault, session.cookie),
            fields=address_fields(gift.line.country) if is_form else [],
            typed=typed if typed is not None else gift.address or {"name": gift.line.recipient_name or ""},
            errors=errors or {},
            most_of_note=MOST_CHARACTERS,
            **values,
        )

    async def _session(self, request: Request) -> Session | None:
        cookie = read_cookie(request, COOKIE)
        if not cookie:
            return None
        now = await self._services.gifts.now()
        environment = self._services.settings.environment
        return read_session(self._services.vault, environment, cookie, request.path_params["handle"], now)

    async def _claimed(self, request: Request) -> tuple[Session, ClaimedGift] | None:
        """Returns the session of the browser and its gift; None without a session."""
        session = await self._session(request)
        gift = None if session is None else await self._services.gifts.read(session.line)
        return None if session is None or gift is None else (session, gift)

    async def _posted(self, request: Request) -> tuple[Session, dict[str, str]]:
        """Returns the session and form of a post. Raises BadForm if the form does not belong to the session, which may have ended."""
        form = await read_form(request)
        session = await self._session(request)
        if session is None or not is_form_of(self._services.vault, session.cookie, form.get("key", "")):
            request.state.typed = "\n".join(
                form[name] for name in reversed(form) if name not in _NOT_TYPED and form[name]
            )
            raise BadForm
        return session, form


_NOT_TYPED = {"key", "product", "sure"}  # fields of the forms that are not typed
_WRONG_NOTES: Mapping[type[InvalidRequest], str] = {NoteTooLong: "long", NoteWithLink: "link"}


def _until(country: str, deadline: Deadline) -> dict[str, Any]:
    """Returns what the page of a link says about the claim-by date."""
    claim_by = deadline.claim_by
    return {"until": None if claim_by is None else last_whole_day(claim_by, country), "lapsed": deadline.lapsed}


def _chosen(gift: ClaimedGift, values: Mapping[str, str]) -> Product | None:
    """Returns the product that a form or an address names, if the gift can be it."""
    return next((one for one in gift.choices if str(one.id) == values.get("product")), None)


def _typed_email(form: Mapping[str, str], errors: dict[str, str], *, is_required: bool) -> str | None:
    """Returns the typed address in its normal form; None without one. Adds errors to `errors`."""
    text = trimmed(form.get("email", ""))
    if not text:
        if is_required:
            errors["email"] = "required"
        return None
    try:
        return pasted_email(text)
    except EmailError:
        errors["email"] = "invalid"
        return None
