"""Each form is taken once: a repeat, clicked twice or sent again, gets the answer of the first."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from largesse.base import clock
from largesse.db.pool import Database
from largesse.db.scope import LOOKUP

_TAKE = "INSERT INTO form_posts (session_id, token) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true"
_ANSWER_OF = "SELECT answer FROM form_posts WHERE session_id = $1 AND token = $2"
_ANSWER = "UPDATE form_posts SET answer = $3 WHERE session_id = $1 AND token = $2"
_TAKE_BACK = "DELETE FROM form_posts WHERE session_id = $1 AND token = $2"

_WAIT_S = 20.0  # for the first one's answer
_LOOK_EVERY_S = 0.1


class StillUnderWay(Exception):
    """The first one has not been answered yet, or its process ended before it was."""


@dataclass(frozen=True, slots=True)
class Post:
    """A form of a session, by the token it carries."""

    session_id: int
    token: bytes


async def take_post(database: Database, post: Post) -> bytes | None:
    """None on the first submission, otherwise the stored response. Raises StillUnderWay."""
    until_s = clock.passed_s() + _WAIT_S
    while True:
        taken = await database.fetchval(LOOKUP, _TAKE, post.session_id, post.token)
        if taken:
            return None
        row = await database.fetchrow(LOOKUP, _ANSWER_OF, post.session_id, post.token)
        if row is not None and row["answer"] is not None:
            return bytes(row["answer"])
        if clock.passed_s() > until_s:
            raise StillUnderWay
        if row is not None:  # else the first one has taken it back
            await asyncio.sleep(_LOOK_EVERY_S)


async def answer_post(database: Database, post: Post, answer: bytes) -> None:
    """Keeps the answer, sealed, for repeats."""
    await database.execute(LOOKUP, _ANSWER, post.session_id, post.token, answer)


async def take_back_post(database: Database, post: Post) -> None:
    """Nothing came of it: it may be sent again."""
    await database.execute(LOOKUP, _TAKE_BACK, post.session_id, post.token)
