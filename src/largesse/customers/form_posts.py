"""Carries out each form once. A repeat, after a double click or a reload, gets the answer of the first submission."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

import msgspec

from largesse.base import clock
from largesse.customers.sign_in_store import PEOPLE, SignInSql
from largesse.db.pool import DATABASE_AWAY, Database
from largesse.db.scope import LOOKUP

_WAIT_S = 20.0  # how long a repeat waits for the first answer
_LOOK_EVERY_S = 0.1


class StillUnderWay(Exception):
    """The first submission has no answer yet, or its process ended before it had one."""


class Post(msgspec.Struct, frozen=True):
    """A form of a session, by the token it carries."""

    session_id: int
    token: bytes

    @property
    def about(self) -> bytes:
        """The associated data of its encrypted answer."""
        return b"answer/%d/" % self.session_id + self.token


async def take_post(
    database: Database, post: Post, pausing: Callable[[], AbstractContextManager[None]], sql: SignInSql = PEOPLE
) -> bytes | None:
    """Returns None on the first submission, otherwise the stored response. Raises StillUnderWay.

    Pauses within `pausing()`, because the time-out of a request is shorter than a repeat may wait.
    """
    until_s = clock.passed_s() + _WAIT_S
    while True:
        taken = await database.fetchval(LOOKUP, sql.take_post, post.session_id, post.token)
        if taken:
            return None
        row = await database.fetchrow(LOOKUP, sql.answer_of_post, post.session_id, post.token)
        if row is not None and row["answer"] is not None:
            return bytes(row["answer"])
        if clock.passed_s() > until_s:
            raise StillUnderWay
        if row is not None:  # None if the first submission was rolled back
            with pausing():
                await asyncio.sleep(_LOOK_EVERY_S)


async def answer_post(database: Database, post: Post, answer: bytes, sql: SignInSql = PEOPLE) -> None:
    """Stores the answer, encrypted, for repeats."""
    await database.execute(LOOKUP, sql.answer_post, post.session_id, post.token, answer)


async def take_back_post(database: Database, post: Post, sql: SignInSql = PEOPLE) -> None:
    """Allows the form to be sent again, because it had no effect. While the database is away, a repeat raises StillUnderWay instead."""
    with suppress(*DATABASE_AWAY):  # the caller has an error to report, or an answer to give
        await database.execute(LOOKUP, sql.take_back_post, post.session_id, post.token)
