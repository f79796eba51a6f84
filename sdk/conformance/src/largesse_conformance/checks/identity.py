"""The identity of the caller, and the people of the customer."""

from __future__ import annotations

from typing import Any

from largesse_conformance import expect
from largesse_conformance.context import Context
from largesse_conformance.outcome import Skipped
from largesse_conformance.shapes import IDENTITY, USER
from largesse_conformance.suite import add_members, check


def _users(context: Context) -> list[dict[str, Any]]:
    return context.once("users", lambda: expect.listed(context.main.get("/users")))


add_members("identity", "response of GET /me", IDENTITY, lambda context: [context.me()])
add_members("identity.users", "user", USER, _users)


@check()
def same_for_every_request(context: Context) -> None:
    """GET /me returns the same identity each time."""
    expect.equal(expect.found(context.main.get("/me")), context.me(), "GET /me")


@check()
def colleague(context: Context) -> None:
    """Another service account has the same customer, and another id."""
    other, own = context.me("colleague"), context.me()
    expect.equal(other["customerId"], own["customerId"], "`customerId` of the colleague's key")
    expect.expect(other["serviceAccountId"] != own["serviceAccountId"], "Both keys have the same `serviceAccountId`.")


@check()
def other_customer(context: Context) -> None:
    """The identity of another customer's key has another customer and another service account."""
    other, own = context.me("other"), context.me()
    expect.expect(other["customerId"] != own["customerId"], "Both keys have the same `customerId`.")
    expect.expect(other["serviceAccountId"] != own["serviceAccountId"], "Both keys have the same `serviceAccountId`.")


@check()
def users_are_newest_first(context: Context) -> None:
    """GET /users lists the newest people first."""
    dates = [user["creationDate"] for user in _users(context)]
    expect.equal(dates, sorted(dates, reverse=True), "The order of `creationDate`")


@check()
def users_limit(context: Context) -> None:
    """`limit` of GET /users limits the list."""
    expect.expect(len(expect.listed(context.main.get("/users", limit=1))) <= 1, "limit=1 returned more than one.")


@check()
def users_offset(context: Context) -> None:
    """`offset` of GET /users skips people."""
    ids = [user["id"] for user in _users(context)]
    if len(ids) < 2:
        raise Skipped("The customer has fewer than two people.")
    rest = [user["id"] for user in expect.listed(context.main.get("/users", offset=1))]
    expect.equal(rest[: len(ids) - 1], ids[1:][: len(rest)], "The list after offset=1")


@check()
def users_limit_is_refused_above_200(context: Context) -> None:
    """`limit` of GET /users is at most 200."""
    expect.refused(context.main.get("/users", limit=201), 400, "limit")


@check()
def users_of_another_customer(context: Context) -> None:
    """GET /users lists no people of another customer."""
    theirs = {user["id"] for user in expect.listed(context.caller("other").get("/users"))}
    expect.equal(theirs & {user["id"] for user in _users(context)}, set(), "People in both lists")
