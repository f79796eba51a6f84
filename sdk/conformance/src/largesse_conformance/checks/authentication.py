"""Authentication: keys, plans, and the order of the checks."""

from __future__ import annotations

from largesse_conformance import expect
from largesse_conformance.context import Context
from largesse_conformance.http import Caller
from largesse_conformance.suite import add, check

_READS = (
    "/me",
    "/products",
    "/products/1",
    "/collections",
    "/collections/1",
    "/templates",
    "/funding-accounts",
    "/orders",
    "/orders/CONFORMANCE",
    "/users",
)
_WRITES = ("/send/gift", "/send/collection", "/send/template", "/webhooks")
_UNREADABLE = "{"


def _add_operations() -> None:
    for path in _READS:

        def read(context: Context, path: str = path) -> None:
            expect.status(context.nobody.get(path), 401)

        add(f"authentication.no_key_get{path.replace('/', '_').lower()}", f"GET {path} without a key is 401.", read)
    for path in _WRITES:

        def write(context: Context, path: str = path) -> None:
            expect.status(context.nobody.post(path, {}), 401)

        add(f"authentication.no_key_post{path.replace('/', '_')}", f"POST {path} without a key is 401.", write)


_add_operations()


@check()
def bearer_key(context: Context) -> None:
    """A key is accepted as `Authorization: Bearer KEY`."""
    expect.status(context.main.get("/me"), 200)


@check()
def x_api_key(context: Context) -> None:
    """A key is accepted as `X-Api-Key: KEY`, and identifies the same caller."""
    caller = Caller(context.service, (("X-Api-Key", context.settings.keys["main"]),))
    expect.equal(expect.found(caller.get("/me")), context.me(), "GET /me with X-Api-Key")


@check()
def both_headers(context: Context) -> None:
    """A request with both key headers is refused with 400."""
    key = context.settings.keys["main"]
    caller = Caller(context.service, (("Authorization", f"Bearer {key}"), ("X-Api-Key", key)))
    expect.refused(caller.get("/me"), 400)


@check()
def repeated_header(context: Context) -> None:
    """A request with one key header twice is refused with 400."""
    key = context.settings.keys["main"]
    caller = Caller(context.service, (("X-Api-Key", key), ("X-Api-Key", key)))
    expect.refused(caller.get("/me"), 400)


@check()
def unknown_key(context: Context) -> None:
    """An unknown key is 401."""
    caller = Caller(context.service, (("Authorization", f"Bearer lgs_live_{context.run_id}"),))
    expect.refused(caller.get("/me"), 401)


@check()
def almost_the_key(context: Context) -> None:
    """A key with one more character is 401."""
    caller = Caller(context.service, (("X-Api-Key", context.settings.keys["main"] + "0"),))
    expect.refused(caller.get("/me"), 401)


@check()
def deleted_key(context: Context) -> None:
    """A deleted key is 401."""
    expect.refused(context.caller("deleted").get("/me"), 401)


@check()
def key_of_the_other_environment(context: Context) -> None:
    """A key of the other environment is 401."""
    expect.refused(context.caller("elsewhere").get("/me"), 401)


@check()
def plan_without_the_api(context: Context) -> None:
    """On a plan below Pro an otherwise valid key is 402."""
    expect.refused(context.caller("no_plan").get("/products"), 402)


@check()
def plan_without_the_api_sends_nothing(context: Context) -> None:
    """On a plan below Pro a send is 402."""
    expect.refused(context.caller("no_plan").post("/send/gift", {"productId": 1, "codeQuantity": 1}), 402)


@check()
def plan_comes_before_the_body(context: Context) -> None:
    """The plan is checked before the body is read."""
    expect.refused(context.caller("no_plan").post_raw("/send/gift", _UNREADABLE), 402)


@check()
def key_comes_before_the_body(context: Context) -> None:
    """The key is checked before the body is read."""
    expect.refused(context.nobody.post_raw("/send/gift", _UNREADABLE), 401)


@check()
def inactive_service_account_identity(context: Context) -> None:
    """A service account that is switched off may still call GET /me."""
    expect.status(context.caller("inactive").get("/me"), 200)


@check()
def inactive_service_account_accounts(context: Context) -> None:
    """GET /funding-accounts is an error for a service account that is switched off."""
    expect.refused(context.caller("inactive").get("/funding-accounts"), 403)


@check()
def inactive_service_account_send(context: Context) -> None:
    """A service account that is switched off sends nothing: 403."""
    expect.refused(context.caller("inactive").post("/send/gift", {"productId": 1, "codeQuantity": 1}), 403)


@check()
def health_needs_no_key(context: Context) -> None:
    """GET /health needs no key and says that the service works, with its version."""
    body = expect.found(context.nobody.get("/health"))
    expect.expect(body.get("status") in {"pass", "warn"}, f"`status` is {body.get('status')!r}, not pass or warn.")
    expect.expect(isinstance(body.get("version"), str) and body["version"], "`version` is missing.")


@check()
def key_is_not_echoed(context: Context) -> None:
    """An error does not repeat the key that was sent."""
    wrong = f"lgs_live_{context.run_id}_echo"
    answer = Caller(context.service, (("X-Api-Key", wrong),)).get("/me")
    expect.expect(wrong not in answer.text, "The body of the 401 repeats the key.")
