"""A form that a file is handed in with: read as browsers write it, and refused where no form of ours would send it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.requests import Request

from largesse.web.kit.body import BodyLimits
from largesse.web.kit.forms import BadForm, PostedForm, form_parser
from largesse.web.kit.problems import TooLarge

LIMITS = BodyLimits(10_000, whole_s=5.0, pause_s=5.0)
TYPE = "multipart/form-data; boundary=abc"


def part(name: str, content: bytes, more: str = "") -> bytes:
    return f'--abc\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + content + b"\r\n"


def request(body: bytes, media_type: str = TYPE, **headers: str) -> Request:
    pieces: Iterator[dict[str, Any]] = iter(
        [
            *({"type": "http.request", "body": bytes([byte]), "more_body": True} for byte in body[:50]),
            {"type": "http.request", "body": body[50:], "more_body": False},
        ]
    )

    async def receive() -> dict[str, Any]:
        return next(pieces)

    all_headers = {"content-type": media_type, **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in all_headers.items()]
    return Request({"type": "http", "method": "POST", "headers": raw}, receive)


async def read_upload(posted: Request, limits: BodyLimits) -> tuple[list[tuple[str, str]], dict[str, bytes]]:
    form = PostedForm(posted, limits, parser=form_parser(posted, 20, takes_files=True))
    await form.read()
    return form.fields, form.files


async def test_fields_and_files_are_told_apart() -> None:
    body = (
        part("token", "zoë".encode())
        + part("file", b"\x00\xff\r\n\r\n--ab", '; filename="C:\\x.csv"')
        + part("empty", b"", '; filename=""')
        + part("blank", b"", '; filename="x.csv"')
        + part("token", b"again")
        + b"--abc--\r\n"
    )
    fields, files = await read_upload(request(body), LIMITS)
    assert fields == [("token", "zoë"), ("token", "again")]
    assert files == {"file": b"\x00\xff\r\n\r\n--ab", "blank": b""}


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"", TYPE),
        (b"token=x", TYPE),
        (part("token", b"x"), TYPE),  # it does not end
        (part("token", b"x") + b"--abc--\r\n", "application/json"),
        (part("token", b"x") + b"--abc--\r\n", "multipart/form-data"),
        (part("x", b"") * 21 + b"--abc--\r\n", TYPE),
        (part("x" * 1_000, b"") + b"--abc--\r\n", TYPE),
        (b"--abc\r\nContent-Disposition: attachment\r\n\r\nx\r\n--abc--\r\n", TYPE),
    ],
)
async def test_what_no_form_of_ours_sends_is_refused(body: bytes, media_type: str) -> None:
    with pytest.raises(BadForm):
        await read_upload(request(body, media_type), LIMITS)


async def test_another_sites_form_is_refused_and_too_much_told() -> None:
    body = part("token", b"x") + b"--abc--\r\n"
    with pytest.raises(BadForm):
        await read_upload(request(body, sec_fetch_site="cross-site"), LIMITS)
    with pytest.raises(TooLarge):
        await read_upload(request(part("file", bytes(10_000))), LIMITS)


async def test_a_form_is_freed_without_a_garbage_collection() -> None:
    posted = PostedForm(
        asked := request(part("a", b"1") + b"--abc--\r\n"), LIMITS, parser=form_parser(asked, 5, takes_files=True)
    )
    await posted.read()
    assert posted.fields == [("a", "1")]
    parser = weakref.ref(posted._parser)
    gc.disable()
    try:
        del posted, asked
        assert parser() is None
    finally:
        gc.enable()
