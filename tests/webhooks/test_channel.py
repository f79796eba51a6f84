"""Our side of HTTP/1.1, against a server that answers byte for byte what a test says."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
from tests.webhooks.conftest import LOOPBACK, no_names

from largesse.webhooks.outcomes import AttemptResult
from largesse.webhooks.transport import HttpTransport


@dataclass
class Script:
    """For each request, the chunks of its answer; `None` among them closes the connection."""

    answers: list[Sequence[bytes | None]]
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                for chunk in self.answers.pop(0):
                    if chunk is None:
                        return
                    writer.write(chunk)
                    await writer.drain()
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    async with HttpTransport(LOOPBACK, 5.0, no_names) as transport:
        yield transport


async def ask(transport: HttpTransport, script: Script, times: int = 1) -> list[AttemptResult]:
    server = await asyncio.start_server(script.handle, "127.0.0.1", 0)
    script.port = server.sockets[0].getsockname()[1]
    answers = [
        await transport.post(f"http://127.0.0.1:{script.port}/hook?x=1", b'{"id":1}', {"X-Test": "yes"}, 1)
        for _ in range(times)
    ]
    server.close()
    return answers


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def test_the_request_is_what_http_asks_for(transport: HttpTransport) -> None:
    script = Script([[OK]])
    [answer] = await ask(transport, script)
    assert (answer.status, answer.body, answer.error) == (200, b"ok", None)
    [request] = script.requests
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /hook?x=1 HTTP/1.1"
    assert sorted(lines[1:]) == ["Accept: */*", "Content-Length: 8", f"Host: 127.0.0.1:{script.port}", "X-Test: yes"]
    assert body == b'{"id":1}'


@pytest.mark.parametrize(
    ("chunks", "status", "body"),
    [
        ([OK], 200, b"ok"),
        ([bytes([byte]) for byte in OK], 200, b"ok"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b""),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", OK], 200, b"ok"),
        ([b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK], 200, b"ok"),
        ([b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"], 201, b"abcde"),
        ([b"HTTP/1.1 200 OK\r\n\r\nuntil the end", None], 200, b"until the end"),
        ([b"HTTP/1.0 200 OK\r\n\r\nold", None], 200, b"old"),
        ([b"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\ncut off", None], 500, b"cut off"),
        ([b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"], 101, b""),
    ],
)  # fmt: skip
async def test_answers_that_are_read(
    transport: HttpTransport, chunks: list[bytes | None], status: int, body: bytes
) -> None:
    [answer] = await ask(transport, Script([chunks]))
    assert (answer.status, answer.body, answer.error) == (status, body, None)


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        ([None], "connection_lost"),
        ([b"HTTP/1.1 200", None], "connection_lost"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", None], "connection_lost"),
        ([b"SSH-2.0-OpenSSH\r\n"], "bad_answer"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"], "bad_answer"),
        ([b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000], "bad_answer"),
        ([b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000], "bad_answer"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000], "bad_answer"),
    ],
)
async def test_answers_that_are_none(transport: HttpTransport, chunks: list[bytes | None], error: str) -> None:
    [answer] = await ask(transport, Script([chunks]))
    assert (answer.status, answer.error) == (None, error)


async def test_retry_after_is_told_and_not_kept_for_the_next(transport: HttpTransport) -> None:
    asking = b"HTTP/1.1 429 No\r\nRETRY-AFTER: 7\r\nContent-Length: 0\r\n\r\n"
    script = Script([[asking], [OK]])
    first, second = await ask(transport, script, 2)
    assert (first.status, first.retry_after) == (429, "7")
    assert (second.status, second.retry_after) == (200, None)
    assert script.connections == 1


@pytest.mark.parametrize(
    ("first", "connections"),
    [
        (OK, 1),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 2),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 2),
        (OK + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", 2),
        (OK + b"H", 2),
    ],
)
async def test_a_connection_is_used_again_where_it_may_be(
    transport: HttpTransport, first: bytes, connections: int
) -> None:
    script = Script([[first], [OK]])
    answers = await ask(transport, script, 2)
    assert [answer.body for answer in answers] == [b"ok", b"ok"]
    assert script.connections == connections


async def test_a_connection_that_was_closed_while_idle_costs_no_attempt(transport: HttpTransport) -> None:
    script = Script([[OK], [None], [OK]])
    answers = await ask(transport, script, 2)
    assert [answer.status for answer in answers] == [200, 200]
    assert len(script.requests) == 3


async def test_a_connection_that_breaks_off_an_answer_does(transport: HttpTransport) -> None:
    script = Script([[OK], [b"HTTP/1.1 2", None], [OK]])
    answers = await ask(transport, script, 2)
    assert [answer.error for answer in answers] == [None, "connection_lost"]
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    "endless",
    [b"0\r\nX: " + b"y" * 300_000, b"0\r\n" + b"X: y\r\n" * 50_000, b"1;" + b"y" * 300_000, b"1\r\nx\r\n" * 50_000],
    ids=["trailer", "trailers", "extension", "chunks"],
)
async def test_a_body_whose_chunks_never_end_is_cut_off(transport: HttpTransport, endless: bytes) -> None:
    # The receiver keeps the connection open, so that only the size of what it sent ends the attempt before its time limit.
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
    [answer] = await ask(transport, Script([[head, endless]]))
    assert (answer.status, answer.error, answer.body[:1]) == (200, None, b"x")
