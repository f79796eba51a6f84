"""Webhook subscriptions: requests that are accepted, and requests that are refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from largesse_conformance import expect
from largesse_conformance.context import Context
from largesse_conformance.http import Caller
from largesse_conformance.outcome import Skipped
from largesse_conformance.shapes import SUBSCRIPTION
from largesse_conformance.suite import add, add_members, check

_TARGET = "https://hooks.example.com/conformance"
_LOOPBACK = {
    "localhost": "https://localhost/hook",
    "loopback": "https://127.0.0.1/hook",
    "loopback_short": "https://127.1/hook",
    "loopback_number": "https://2130706433/hook",
    "loopback_hexadecimal": "https://0x7f000001/hook",
    "loopback_octal": "https://0177.0.0.1/hook",
    "loopback_ipv6": "https://[::1]/hook",
    "loopback_mapped": "https://[::ffff:127.0.0.1]/hook",
}
_REFUSED = {
    "http": "http://hooks.example.com/hook",
    "ftp": "ftp://hooks.example.com/hook",
    "no_scheme": "hooks.example.com/hook",
    "no_host": "https:///hook",
    "private_10": "https://10.0.0.1/hook",
    "private_172": "https://172.16.0.1/hook",
    "private_192": "https://192.168.0.1/hook",
    "private_ipv6": "https://[fd00::1]/hook",
    "link_local": "https://169.254.169.254/latest",
    "link_local_ipv6": "https://[fe80::1]/hook",
    "shared": "https://100.64.0.1/hook",
    "unspecified": "https://0.0.0.0/hook",
    "multicast": "https://224.0.0.1/hook",
    "broadcast": "https://255.255.255.255/hook",
}


def _create(context: Context, caller: Caller | None = None, **members: Any) -> dict[str, Any]:
    """Subscribes and returns the response; the subscription ends with the run."""
    caller = caller or context.main
    body = {"targetUrl": _TARGET, "event": "order.created"} | members
    found = expect.found(caller.post("/webhooks", body), 201)
    context.subscribed.append((caller, str(expect.member(found, "id"))))
    return dict(found)


def _end(context: Context, subscription: dict[str, Any]) -> None:
    expect.status(context.main.delete(f"/webhooks/{subscription['id']}"), 204)
    context.subscribed = [(caller, one) for caller, one in context.subscribed if one != subscription["id"]]


def _created(context: Context) -> dict[str, Any]:
    """Returns the response of a new subscription, which is ended at once."""

    def create() -> dict[str, Any]:
        found = _create(context)
        _end(context, found)
        return found

    return context.once("subscription", create)


add_members("webhooks", "subscription", SUBSCRIPTION, lambda context: [_created(context)])


@check()
def echoes(context: Context) -> None:
    """A subscription repeats its event and its target."""
    found = _created(context)
    expect.equal(found["event"], "order.created", "`event`")
    expect.equal(found["targetUrl"], _TARGET, "`targetUrl`")


@check()
def secrets_differ(context: Context) -> None:
    """Each subscription has its own secret, of at least 20 characters."""
    first, second = _created(context), _create(context)
    _end(context, second)
    expect.expect(first["secret"] != second["secret"], "Two subscriptions have the same secret.")
    expect.expect(len(first["secret"]) >= 20, "The secret has fewer than 20 characters.")


@check()
def secret_is_shown_once(context: Context) -> None:
    """GET /webhooks lists a subscription without its secret."""
    found = _create(context)
    answer = context.main.get("/webhooks")
    _end(context, found)
    expect.expect(any(one["id"] == found["id"] for one in expect.listed(answer)), "The subscription is not listed.")
    expect.expect(found["secret"] not in answer.text, "The list has the secret.")


@check()
def ended(context: Context) -> None:
    """DELETE /webhooks/{id} ends a subscription: 204 without a body, and then 404."""
    found = _create(context)
    answer = context.main.delete(f"/webhooks/{found['id']}")
    expect.status(answer, 204)
    expect.equal(answer.text, "", "The body of the 204")
    expect.refused(context.main.delete(f"/webhooks/{found['id']}"), 404)


@check()
def unknown_subscription(context: Context) -> None:
    """A subscription that does not exist is 404."""
    expect.refused(context.main.delete(f"/webhooks/{UUID(int=1)}"), 404)


@check()
def subscription_of_another_customer(context: Context) -> None:
    """Another customer can neither see nor end a subscription: 404."""
    other = context.caller("other")
    found = _create(context)
    listed = [one["id"] for one in expect.listed(other.get("/webhooks"))]
    expect.expect(found["id"] not in listed, "The other customer sees the subscription.")
    expect.refused(other.delete(f"/webhooks/{found['id']}"), 404)
    _end(context, found)


@check()
def event_unknown(context: Context) -> None:
    """An unknown event is 400."""
    expect.refused(context.main.post("/webhooks", {"targetUrl": _TARGET, "event": "order.imagined"}), 400, "event")


@check()
def event_missing(context: Context) -> None:
    """An event is required: 400."""
    expect.refused(context.main.post("/webhooks", {"targetUrl": _TARGET}), 400, "event")


@check()
def target_missing(context: Context) -> None:
    """`targetUrl` is required: 400."""
    expect.refused(context.main.post("/webhooks", {"event": "order.created"}), 400, "targetUrl")


@check()
def target_number(context: Context) -> None:
    """`targetUrl` is a text: 400."""
    expect.refused(context.main.post("/webhooks", {"targetUrl": 1, "event": "order.created"}), 400, "targetUrl")


@check()
def several_events(context: Context) -> None:
    """`events` names several events; then `event` is null."""
    names = ["gift.claimed", "gift.bounced"]
    answer = context.main.post("/webhooks", {"targetUrl": _TARGET, "events": names})
    found = expect.found(answer, 201)
    context.subscribed.append((context.main, found["id"]))
    _end(context, found)
    expect.equal(sorted(expect.member(found, "events")), sorted(names), "`events`")
    expect.equal(found["event"], None, "`event`")


@check()
def rotated(context: Context) -> None:
    """POST /webhooks/{id}/rotate-secret returns a new secret."""
    found = _create(context)
    rotated = expect.found(context.main.post(f"/webhooks/{found['id']}/rotate-secret"))
    _end(context, found)
    expect.expect(rotated["secret"] != found["secret"], "The secret is the same.")


def _add_targets() -> None:
    for name, url in {**_REFUSED, **_LOOPBACK}.items():

        def run(context: Context, url: str = url, name: str = name) -> None:
            answer = context.main.post("/webhooks", {"targetUrl": url, "event": "order.created"})
            if answer.status == 201:
                context.main.delete(f"/webhooks/{answer.body()['id']}")
                if name in _LOOPBACK and context.once("loopback", lambda: _allows_loopback(context)):
                    raise Skipped("The service allows targets on its own machine, for development.")
            expect.refused(answer, 400)

        add(f"webhooks.target_{name}", f"A target that is not public and https is refused: {url}", run)


def _allows_loopback(context: Context) -> bool:
    """Returns whether plain http to this machine is allowed, as by a setting for development."""
    answer = context.main.post("/webhooks", {"targetUrl": "http://127.0.0.1:9/hook", "event": "order.created"})
    if answer.status != 201:
        return False
    context.main.delete(f"/webhooks/{answer.body()['id']}")
    return True


_add_targets()
