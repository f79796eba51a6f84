"""The body of errors."""

from __future__ import annotations

from collections.abc import Callable

from largesse_conformance import expect, orders
from largesse_conformance.context import Context
from largesse_conformance.http import Answer
from largesse_conformance.outcome import Failed
from largesse_conformance.shapes import PROBLEM
from largesse_conformance.suite import add, check

_MEDIA_TYPE = "application/problem+json"


def _bad_request(context: Context) -> Answer:
    return context.main.get("/orders", limit=0)


def _bad_body(context: Context) -> Answer:
    return context.main.post_raw("/send/gift", "{")


def _no_key(context: Context) -> Answer:
    return context.nobody.get("/me")


def _no_plan(context: Context) -> Answer:
    return context.caller("no_plan").get("/products")


def _inactive(context: Context) -> Answer:
    return context.caller("inactive").get("/products")


def _unknown(context: Context) -> Answer:
    return context.main.get("/products/2147483647")


def _used(context: Context) -> Answer:
    order = orders.batch(context)
    return context.send(order.gift.path, order.body)


_ERRORS: dict[str, tuple[int, Callable[[Context], Answer], tuple[str, ...]]] = {
    "400_parameter": (400, _bad_request, ()),
    "400_body": (400, _bad_body, ()),
    "401": (401, _no_key, ()),
    "402": (402, _no_plan, ()),
    "403": (403, _inactive, ()),
    "404": (404, _unknown, ()),
    "409": (409, _used, ("batch",)),
}


def _add_errors() -> None:
    for name, (status, ask, uses) in _ERRORS.items():

        def media_type(context: Context, ask: Callable[[Context], Answer] = ask) -> None:
            found = ask(context).headers.get("Content-Type", "").partition(";")[0]
            expect.equal(found, _MEDIA_TYPE, "The Content-Type")

        def members(context: Context, ask: Callable[[Context], Answer] = ask, status: int = status) -> None:
            body = expect.refused(ask(context), status)
            for member in PROBLEM:
                if fault := member.fault(body):
                    raise Failed(f"In the body of the {status}, {fault}.")

        def same_status(context: Context, ask: Callable[[Context], Answer] = ask, status: int = status) -> None:
            expect.equal(expect.refused(ask(context), status).get("status"), status, "`status` of the body")

        def page(context: Context, ask: Callable[[Context], Answer] = ask, status: int = status) -> None:
            kind = expect.refused(ask(context), status).get("type")
            expect.expect(isinstance(kind, str) and kind.startswith("/"), f"`type` is {kind!r}, no address.")
            expect.status(context.nobody.get(str(kind)), 200)

        add(f"errors.{name}_media_type", f"The body of a {status} is {_MEDIA_TYPE} ({name}).", media_type, uses=uses)
        add(
            f"errors.{name}_members",
            f"The body of a {status} has the five members with their types ({name}).",
            members,
            uses=uses,
        )
        add(
            f"errors.{name}_status",
            f"`status` of the body is the status of the response ({name}).",
            same_status,
            uses=uses,
        )
        add(
            f"errors.{name}_type", f"`type` is the address of a page that explains the error ({name}).", page, uses=uses
        )


_add_errors()


@check()
def unknown_address(context: Context) -> None:
    """An address that does not exist is 404, as a problem."""
    answer = context.main.get(f"/conformance-{context.run_id}")
    expect.refused(answer, 404)


@check()
def wrong_method(context: Context) -> None:
    """A method that an address does not have is 405, and `Allow` names its methods."""
    answer = context.main.delete("/me")
    expect.refused(answer, 405)
    expect.expect("GET" in answer.headers.get("Allow", ""), "`Allow` does not name GET.")


@check()
def request_id(context: Context) -> None:
    """Every response has an `X-Request-Id`, which is different each time."""
    ids = [answer.headers.get("X-Request-Id") for answer in (context.nobody.get("/me"), context.main.get("/me"))]
    expect.expect(all(ids) and ids[0] != ids[1], f"The request ids are {ids}.")


@check()
def given_request_id(context: Context) -> None:
    """A request id that the caller sends is used."""
    own = f"conformance-{context.run_id}"
    answer = context.service.ask("GET", "/health", headers={"X-Request-Id": own})
    expect.equal(answer.headers.get("X-Request-Id"), own, "X-Request-Id")


@check()
def titles_say_something(context: Context) -> None:
    """`title` and `detail` of an error are texts for people."""
    body = expect.refused(_bad_request(context), 400)
    expect.expect(body.get("title") and body.get("detail"), "`title` or `detail` is empty.")
