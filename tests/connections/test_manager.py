"""Connections that wait too long, with times short enough to wait for, and an application that does as little as can be."""

import asyncio
import contextlib
import select
import time
from collections.abc import Iterator

import pytest
from tests.connections.conftest import PATIENCE_S, get
from tests.web.api.conftest import serving

from largesse.connections.manager import ConnectionManager

LARGE = 16 * 1024 * 1024
CHUNKS = b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


class Echo:
    """Answers at once, for `/large` with much; for `/slow` after a while; for `/read` once it has the body."""

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            for stage in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{stage}.complete"})
            return
        if scope["path"] == "/slow":
            await asyncio.sleep(1.5)
        while scope["path"] == "/read" and (await receive()).get("more_body"):
            pass
        if scope["path"] == "/parts":
            await in_parts(receive, send)
            return
        body = b"x" * (LARGE if scope["path"] == "/large" else 2)
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def in_parts(receive, send) -> None:
    """An answer to a body that was asked for, in chunks that come late."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for part in (b"one", b"two", b""):
        await asyncio.sleep(0.1)
        await send({"type": "http.response.body", "body": part, "more_body": bool(part)})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a service that waits but a second for anything; idle connections it keeps."""
    with serving(Echo(), ConnectionManager(100, head_s=1.0, idle_s=60.0, unread_s=1.0, sweep_every_s=0.1)) as url:
        yield url


@pytest.fixture(scope="module")
def patient_url() -> Iterator[str]:
    """Of a service that waits for anything but for idle connections."""
    with serving(Echo(), ConnectionManager(100, head_s=60.0, idle_s=0.6, sweep_every_s=0.1)) as url:
        yield url


@pytest.fixture
def small_url() -> Iterator[str]:
    """Of a service that holds 20 connections."""
    with serving(Echo(), ConnectionManager(20)) as url:
        yield url


def elapsed_s(connection) -> float:
    """How long until the connection ends."""
    began = time.monotonic()
    assert connection.answer() is None
    return time.monotonic() - began


def test_who_says_nothing_is_closed_without_a_word(url, wire) -> None:
    assert 0.9 <= elapsed_s(wire(url)) < PATIENCE_S


def test_half_a_head_is_answered_408(url, wire) -> None:
    connection = wire(url)
    answer = connection.ask(HEAD)
    assert (answer.status, answer.json["type"]) == (408, "/problems/slow-request")
    assert connection.answer() is None


@pytest.mark.long
def test_a_head_in_drops_takes_no_longer(url, wire) -> None:
    connection = wire(url)
    connection.send(HEAD)
    connection.drip(b"X: 1\r\n", every_s=0.2)


def test_empty_lines_between_requests_keep_nothing_open(patient_url, wire) -> None:
    connection = wire(patient_url)
    assert connection.ask(get("/")).status == 200
    connection.drip(b"\r\n", every_s=0.3)


def test_an_idle_connection_is_kept_for_longer_than_a_head_may_take(url, wire) -> None:
    connection = wire(url)
    assert connection.ask(get("/")).status == 200
    time.sleep(1.4)
    assert connection.ask(get("/")).status == 200


@pytest.mark.slow
def test_an_idle_connection_is_not_kept_for_ever(patient_url, wire) -> None:
    connection = wire(patient_url)
    assert connection.ask(get("/slow")).status == 200
    assert 0.5 <= elapsed_s(connection) < PATIENCE_S


def test_a_slow_answer_is_not_cut_off_by_what_follows_it(url, wire) -> None:
    connection = wire(url)
    connection.send(get("/slow") + HEAD)
    assert [answer and answer.status for answer in (connection.answer(), connection.answer())] == [200, 408]


def test_a_head_in_pieces(patient_url, wire) -> None:
    connection = wire(patient_url)
    for piece in (b"GET /", b" HTTP/1.1\r\n", b"Host: x\r\n"):
        connection.send(piece)
        time.sleep(0.1)
    assert connection.ask(b"\r\n").status == 200


def test_a_body_nobody_waits_for_is_not_waited_for_long(url, wire) -> None:
    connection = wire(url)
    assert connection.ask(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx").status == 200
    connection.drip(b"x", every_s=0.2)


def test_a_body_that_comes_after_its_answer(url, wire) -> None:
    connection = wire(url)
    assert connection.ask(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n").status == 200
    connection.send(b"body")
    time.sleep(1.4)  # it is idle now, not late
    assert connection.ask(get("/")).status == 200


@pytest.mark.slow
def test_answers_that_are_not_read_do_not_wait_for_ever(url, wire) -> None:
    connection = wire(url, receive_buffer=4096)
    connection.send(get("/large"))
    time.sleep(3)
    received = 0
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.socket.recv(1 << 16):
            received += len(chunk)
    assert received < LARGE


def test_an_answer_that_is_read_slowly_is_sent_whole(patient_url, wire) -> None:
    connection = wire(patient_url, receive_buffer=1 << 18)
    connection.send(get("/large"))
    received = 0
    while received < LARGE:
        chunk = connection.socket.recv(1 << 20)
        assert chunk, "cut off"
        received += len(chunk)
        time.sleep(0.05 if received < LARGE * 0.9 else 0)


def test_an_answer_in_parts(patient_url, wire) -> None:
    connection = wire(patient_url)
    connection.send(b"POST /parts HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    going_on = connection.answer()
    assert going_on is not None
    assert going_on.status == 100
    answer = connection.ask(b"ok")
    assert (answer.status, answer.headers["transfer-encoding"]) == (200, "chunked")
    assert connection.read(len(CHUNKS)) == CHUNKS
    assert connection.ask(get("/")).body == b"xx"


def test_head_has_no_body(patient_url, wire) -> None:
    connection = wire(patient_url)
    connection.send(get("/").replace(b"GET", b"HEAD", 1) + get("/"))
    head = connection.head()
    assert (head.status, head.headers["content-length"]) == (200, "2")
    answer = connection.answer()
    assert answer is not None
    assert answer.body == b"xx"


class TestFull:
    """At the limit of 20."""

    def test_the_longest_idle_make_room(self, small_url, wire) -> None:
        idle = [wire(small_url) for _ in range(20)]
        assert {one.ask(get("/")).status for one in idle} == {200}
        more = [wire(small_url) for _ in range(10)]
        assert {one.ask(get("/")).status for one in more} == {200}
        assert {one.answer() for one in idle[:10]} == {None}
        assert {one.ask(get("/")).status for one in idle[10:]} == {200}

    def test_who_still_reads_an_answer_is_spared(self, small_url, wire) -> None:
        reading = wire(small_url, receive_buffer=1 << 16)
        reading.send(get("/large"))
        assert select.select([reading.socket], [], [], PATIENCE_S)[0]
        idle = [wire(small_url) for _ in range(19)]
        assert {one.ask(get("/")).status for one in idle} == {200}
        more = [wire(small_url) for _ in range(5)]
        assert {one.ask(get("/")).status for one in more} == {200}
        assert {one.answer() for one in idle[:5]} == {None}
        answer = reading.answer()
        assert answer is not None
        assert len(answer.body) == LARGE

    def test_those_at_work_do_not(self, small_url, wire) -> None:
        busy = [wire(small_url) for _ in range(20)]
        for one in busy:
            one.send(b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo")
        for one in busy:
            one.send(b"d")
        for _ in range(5):
            answer = None
            deadline = time.monotonic() + PATIENCE_S
            while answer is None and time.monotonic() < deadline:  # until all of `busy` are at work
                answer = wire(small_url).answer()
            assert answer is not None
            assert (answer.status, answer.json["type"]) == (503, "/problems/unavailable")
            assert (answer.headers["retry-after"], answer.headers["connection"]) == ("1", "close")
        for one in busy:
            assert one.ask(b"y").status == 200
        assert wire(small_url).ask(get("/")).status == 200
