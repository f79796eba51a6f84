"""`listen` and `trigger`: receive webhooks on a developer's machine. They use the API like any other client."""

import base64
import hashlib
import hmac
import http.client
import json
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import click
import msgspec

from largesse.base.errors import OperatorError
from largesse.base.text import cleaned
from largesse.cli.running import one_line
from largesse.events.kinds import EVENTS
from largesse.webhooks.signing import USER_AGENT, Signer

_TIMEOUT_S = 15.0
_POLL_S = 0.5
_LONGEST_WAIT_S = 30.0  # the longest pause before the next attempt to reach the service
_PAGE = 200
_KEPT_BYTES = 2_048
_KEY = re.compile(r"[\x21-\x7e]+")
_SECRET_BYTES = 33  # as many as in `webhooks.signing.new_secret`

_Shape = TypeVar("_Shape")

_key_option = click.option(
    "--key", envvar="LARGESSE_API_KEY", required=True, help="The API key, by default LARGESSE_API_KEY."
)
_service_option = click.option(
    "--service",
    envvar="LARGESSE",
    default="http://127.0.0.1:8000",
    show_default=True,
    metavar="URL",
    help="The address of the service, by default LARGESSE.",
)


class _NoRedirects(HTTPRedirectHandler):
    """Does not follow redirects: a receiver's redirect is a failure, and the key must not reach another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


_open = build_opener(_NoRedirects).open


class Answer(msgspec.Struct, frozen=True):
    """The answer to a request. A `status` of 0 means that there was none; `body` says why."""

    status: int
    body: bytes


def ask(method: str, url: str, headers: dict[str, str], body: bytes | None = None) -> Answer:
    """Sends one request and returns the answer, also for an error."""
    request = Request(url, data=body, method=method, headers={"User-Agent": USER_AGENT, **headers})  # noqa: S310 - read_url
    try:
        return _exchange(request)
    # UnicodeError: for a host such as a..b.
    except (URLError, http.client.HTTPException, OSError, UnicodeError) as error:
        return Answer(0, _harmless(str(getattr(error, "reason", error) or type(error).__name__)).encode())


def _harmless(text: str) -> str:
    """Returns a text of others in one line, without the control characters that would change the developer's terminal."""
    return cleaned(text, " ").strip()


def _exchange(request: Request) -> Answer:
    """Sends one request and returns the answer. Raises what urllib raises if there is none, or only a part of one."""
    try:
        with _open(request, timeout=_TIMEOUT_S) as response:
            return Answer(response.status, response.read())
    except HTTPError as error:
        with error:
            return Answer(error.code, error.read(_KEPT_BYTES))


def read_url(text: str, argument: str) -> str:
    """Returns an http or https address. Raises OperatorError, naming the argument."""
    wrong = OperatorError(f"{argument} must be an address that begins with http:// or https://")
    try:
        parts = urlsplit(text)
    except ValueError:  # for example, an opening bracket without a closing one
        raise wrong from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise wrong
    if not (parts.path + parts.query).isascii():
        raise OperatorError(f"{argument} must percent-encode characters after its host that are not ASCII")
    return text


def secret_of(key: str) -> str:
    """Returns the secret with which `listen` signs for a key. It is always the same, so that the tested program can store it."""
    derived = hmac.digest(key.encode(), b"largesse listen", hashlib.sha512)[:_SECRET_BYTES]
    return f"whsec_{base64.b64encode(derived).decode('ascii')}"


class Me(msgspec.Struct, rename="camel"):
    """The name of the customer, and the environment, of a key."""

    customer_name: str
    environment: str


class Event(msgspec.Struct):
    """An event of the stream."""

    cursor: str
    event: str
    data: dict[str, Any]


class Service:
    """Calls the API of a service with a key."""

    def __init__(self, url: str, key: str) -> None:
        self._url = read_url(url, "--service").rstrip("/")
        if not _KEY.fullmatch(key):  # for example, from a file with line ends of Windows
            raise OperatorError("--key must be an API key: visible ASCII characters, without blanks and line breaks")
        self._headers = {"Authorization": f"Bearer {key}"}

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Sends one request and returns the answer."""
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        return ask(method, self._url + path, headers, None if body is None else json.dumps(body).encode())

    def get(self, path: str) -> Any:
        """Requests a path and returns the JSON of the answer. Raises OperatorError as `read` does."""
        return self.read(self.ask("GET", path))

    def read(self, answer: Answer) -> Any:
        """Returns the JSON of an answer. Raises OperatorError if there was no answer, or if its status is not 2xx."""
        if answer.status == 0:
            raise OperatorError(f"{self._url} cannot be reached: {answer.body.decode()}")
        try:
            body = json.loads(answer.body)
        except ValueError:
            raise self._not_ours(answer.status) from None
        if 200 <= answer.status < 300:
            return body
        if not isinstance(body, dict):
            raise self._not_ours(answer.status)
        raise OperatorError(
            f"{self._url} answered {answer.status}: {_harmless(str(body.get('detail', 'no reason given')))}"
        )

    def me(self) -> Me:
        """Returns the customer and the environment of the key. Raises OperatorError as `get` does."""
        return self._convert(self.get("/me"), Me)

    def events(self, **query: str | int) -> list[Event]:
        """Returns events of the stream. Raises OperatorError as `get` does."""
        return self._convert(self.get(f"/events?{urlencode(query)}"), list[Event])

    def _convert(self, body: object, shape: type[_Shape]) -> _Shape:
        try:
            return msgspec.convert(body, shape)
        except msgspec.ValidationError:
            raise self._not_ours(200) from None

    def _not_ours(self, status: int) -> OperatorError:
        return OperatorError(
            f"{self._url} answered {status}, but not as a Largesse service does: is it the address of one?"
        )


class Listener(msgspec.Struct):
    """Follows the stream of events and posts each to an address, signed as a webhook is."""

    service: Service
    forward_to: str
    secret: str
    events: Sequence[str]
    show: Callable[[str], None]
    cursor: str = "start"
    sent: int = 0
    _signer: Signer | None = None

    def begin(self) -> None:
        """Moves to the end of the stream. Only later events are forwarded."""
        newest = self.service.events(limit=1)
        self.cursor = newest[0].cursor if newest else "start"

    def step(self) -> bool:
        """Forwards the next events. Returns whether there were any. Raises OperatorError if the stream cannot be read."""
        found = self.service.events(after=self.cursor, limit=_PAGE)
        for event in found:
            if not self.events or event.event in self.events:
                self._forward(event)
            self.cursor = event.cursor
        return bool(found)

    def follow(self, pause: Callable[[float], None]) -> None:
        """Forwards events for ever. If the service cannot be reached, tries again."""
        failed_s = _POLL_S
        while True:
            try:
                wait_s = 0.0 if self.step() else _POLL_S
                failed_s = _POLL_S
            except OperatorError as error:
                wait_s = failed_s = min(2 * failed_s, _LONGEST_WAIT_S)
                self.show(f"{error}. Trying again in {wait_s:g} s.")
            pause(wait_s)

    def _forward(self, event: Event) -> None:
        """Posts one event and shows the program's answer. Never tries again."""
        signer = self._signer or Signer(self.secret.encode())
        self._signer = signer
        # The id of the delivery. It is the same each time an event is forwarded.
        number = int.from_bytes(hashlib.sha256(event.cursor.encode()).digest()[:6])
        self.sent += 1
        body = json.dumps(event.data, ensure_ascii=False, separators=(",", ":")).encode()
        answer = ask("POST", self.forward_to, signer.headers(number, event.event, body), body)
        about = event.data.get("reference") or event.data.get("accountName") or ""
        said = str(answer.status) if answer.status else f"no answer ({answer.body.decode(errors='replace')})"
        self.show(_harmless(f"{event.event} {about} -> {said}"))


def _require_staging(service: Service, *, is_live_allowed: bool) -> Me:
    """Returns the customer and the environment of the key. Raises OperatorError for a key of production, unless that is allowed."""
    me = service.me()
    if me.environment != "staging" and not is_live_allowed:
        raise OperatorError("this is a key of production: use one of staging, or add --live to forward real events")
    return me


@click.command()
@click.option("--forward-to", required=True, metavar="URL", help="Where to post, such as http://127.0.0.1:3000/hook.")
@click.option("--event", "events", multiple=True, metavar="NAME", help="Only this event; may be repeated.")
@click.option("--live", is_flag=True, help="Allow a key of production: its events are real.")
@_service_option
@_key_option
def listen(forward_to: str, events: tuple[str, ...], live: bool, service: str, key: str) -> None:
    """Forward events to a program on this machine, signed as webhooks are.

    Follows the stream of events of the key's customer and environment, from now on. The key needs the scope `read`. Prints the
    signing secret, which stays the same for a key. Posts each event once, even if the program answers with an error. Ends with Ctrl-C.
    """
    with one_line():
        if unknown := [event for event in events if event not in EVENTS]:
            raise OperatorError(f"there is no event {unknown[0]}: the events are {', '.join(EVENTS)}")
        asked = Service(service, key)
        target = read_url(forward_to, "--forward-to")
        me = _require_staging(asked, is_live_allowed=live)
        listener = Listener(asked, target, secret_of(key), events, click.echo)
        listener.begin()
        click.echo(_harmless(f"Forwarding events of {me.customer_name} ({me.environment}) to {target}"))
        click.echo(f"Signing secret: {listener.secret}")
        try:
            listener.follow(time.sleep)
        except KeyboardInterrupt:
            click.echo(f"Stopped. Events forwarded: {listener.sent}")


@click.command()
@click.argument("event")
@_service_option
@_key_option
def trigger(event: str, service: str, key: str) -> None:
    """Make EVENT happen in staging, such as gift.claimed: webhooks and `largesse listen` get a sample of it.

    The key must be one of staging, with the scope `webhooks`. The order, gift or account in the event does not exist.
    """
    with one_line():
        if event not in EVENTS:
            raise OperatorError(f"there is no event {event}: the events are {', '.join(EVENTS)}")
        asked = Service(service, key)
        if asked.me().environment != "staging":
            raise OperatorError("this is a key of production, where events cannot be triggered: use one of staging")
        triggered = asked.read(asked.ask("POST", "/test/events", {"event": event}))
        click.echo(_harmless(f"{event} was recorded, with the id {triggered['data']['id']}"))
