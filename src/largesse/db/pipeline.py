"""Sends several statements in one round trip, which PostgreSQL's protocol allows and the driver does not.

While a session of the driver is idle, an exchange takes its transport: it writes all statements at once, reads their answers, and gives the
transport back. The driver opens the session, signs in and encrypts. It also gets the messages that the server sends unasked. The server
answers each statement, as each ends with a Sync. See docs/decisions/0061-one-round-trip.md.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from struct import pack
from typing import Any, NamedTuple, cast

import asyncpg

_ROW, _COMPLETE, _ERROR, _PARSED, _READY = b"DCE1Z"
_UNASKED = frozenset(b"NAS")  # notices, notifications and changed parameters
_HEAD = 5  # bytes before the body of a message: its kind, and its length without the kind
_EXECUTE_AND_SYNC = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"


class Statement(NamedTuple):
    """A constant statement. With arguments, it is prepared once in each session. Without, it may be several statements with semicolons."""

    sql: str
    arguments: tuple[Any, ...] = ()  # texts, integers, bytes, instants, None, and lists of the first three, for arrays


class Unanswered(Exception):
    """The connection ended or timed out before the server answered a statement. The statement may have run."""

    def __init__(self, why: BaseException) -> None:
        super().__init__(str(why))
        self.why = why


# The first column of the first row, or the command's tag, such as `COMMIT`, if there are no rows. Or the error.
Answer = str | asyncpg.PostgresError | Unanswered | None


class Exchange(asyncio.Protocol):
    """Statements that are sent together, and their answers. `prepared` has the statements that the session knows. New ones are added to it."""

    def __init__(self, transport: asyncio.Transport, statements: Sequence[Statement], prepared: set[str]) -> None:
        self.answers: list[Answer] = []
        self.status = b"I"  # the state of the transaction: I without one, T within one, E within one that failed
        self._transport = transport
        self._driver = cast("asyncio.Protocol", transport.get_protocol())
        self._statements = statements
        self._prepared = prepared
        self._rest = b""
        self._answer: Answer = None
        self._is_answered = False
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, timeout_s: float | None) -> None:
        """Sends the statements and waits for the answers. If some are Unanswered, the session must end."""
        loop, late = asyncio.get_running_loop(), TimeoutError("the server does not answer")
        timer = None if timeout_s is None else loop.call_later(timeout_s, self._end, late)
        known = self._prepared.copy()
        self._transport.set_protocol(self)
        try:
            self._transport.write(b"".join([message_of(each, known) for each in self._statements]))
            await self._done
        finally:
            if timer is not None:
                timer.cancel()
            self._transport.set_protocol(self._driver)

    def data_received(self, data: bytes) -> None:
        """Reads the complete messages."""
        data, at = self._rest + data, 0
        while len(data) >= at + _HEAD:
            end = at + 1 + int.from_bytes(data[at + 1 : at + _HEAD], "big")
            if len(data) < end:
                break
            if data[at] in _UNASKED or self._done.done():
                self._driver.data_received(data[at:end])
            else:
                self._read(data[at], data[at + _HEAD : end])
            at = end
        self._rest = data[at:]

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the exchange, and passes the event on to the driver."""
        self._end(exc or asyncpg.ConnectionDoesNotExistError("the connection was closed before the server answered"))
        self._driver.connection_lost(exc)

    def pause_writing(self) -> None:
        """Passes the event on to the driver, which must know it when it writes next."""
        self._driver.pause_writing()

    def resume_writing(self) -> None:
        """Passes the event on to the driver."""
        self._driver.resume_writing()

    def _read(self, kind: int, body: bytes) -> None:
        if kind == _ERROR:
            fields = [field.decode("utf-8", "replace") for field in body.split(b"\0") if field]
            self._answer, self._is_answered = asyncpg.PostgresError.new({one[0]: one[1:] for one in fields}), True
        elif kind == _PARSED:
            self._prepared.add(self._statements[len(self.answers)].sql)
        elif kind == _READY:
            self.answers.append(self._answer)
            self._answer, self._is_answered, self.status = None, False, body
            if len(self.answers) == len(self._statements):
                self._end()
        elif kind == _ROW and not self._is_answered:
            length = int.from_bytes(body[2:6], "big", signed=True)
            self._answer, self._is_answered = None if length < 0 else body[6 : 6 + length].decode(), True
        elif kind == _COMPLETE and not self._is_answered:
            self._answer = body[:-1].decode()

    def _end(self, why: BaseException | None = None) -> None:
        if self._done.done():
            return
        if isinstance(self._answer, asyncpg.PostgresError):  # the server has ended the session with this error
            self.answers.append(self._answer)
        while len(self.answers) < len(self._statements):
            self.answers.append(Unanswered(why or EOFError()))
        self._done.set_result(None)


def message_of(statement: Statement, prepared: set[str]) -> bytes:
    """Returns the messages that run a statement. They include Parse unless it is `prepared`, and add it to `prepared`."""
    if not statement.arguments:
        sql = statement.sql.encode() + b"\0"
        return pack("!cI", b"Q", len(sql) + 4) + sql
    name = _NAMES.get(statement.sql) or _NAMES.setdefault(statement.sql, b"largesse_%d\0" % len(_NAMES))
    parse = b""
    if statement.sql not in prepared:
        sql = statement.sql.encode() + b"\0"
        parse = pack("!cI", b"P", len(name) + len(sql) + 6) + name + sql + b"\0\0"
        prepared.add(statement.sql)
    texts = [None if argument is None else text_of(argument).encode() for argument in statement.arguments]
    values = b"".join([b"\xff\xff\xff\xff" if text is None else pack("!I", len(text)) + text for text in texts])
    bind = b"\0" + name + b"\0\0" + pack("!H", len(texts)) + values + b"\0\0"
    return parse + pack("!cI", b"B", len(bind) + 4) + bind + _EXECUTE_AND_SYNC


_NAMES: dict[str, bytes] = {}  # names of this process's constant statements


def text_of(argument: Any) -> str:
    """Returns an argument in PostgreSQL's text format."""
    if isinstance(argument, str):
        return argument
    if isinstance(argument, list):
        items = [text_of(item).replace("\\", "\\\\").replace('"', '\\"') for item in argument]
        return "{" + ",".join([f'"{item}"' for item in items]) + "}"
    if isinstance(argument, bytes):
        return f"\\x{argument.hex()}"
    return argument.isoformat() if isinstance(argument, datetime) else str(argument)
