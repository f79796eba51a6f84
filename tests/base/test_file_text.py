"""The text of files, read at once and in pieces."""

import io

import pytest

from largesse.base import file_text
from largesse.base.file_text import NotText, open_text, read_text

TEXT = "name,city\r\nJosé,Málaga\r\n"


@pytest.fixture(params=[1, 3, 2**20])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in pieces of so many bytes, which may end within a character."""
    monkeypatch.setattr(file_text, "_PIECE", request.param)


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"name\n", "name\n"),
        (TEXT.encode(), TEXT),
        (TEXT.encode("cp1252"), TEXT),
        (b"a" * 50 + "é".encode("cp1252"), "a" * 50 + "é"),
    ],
)
def test_a_file_is_read_whatever_its_encoding(data: bytes, text: str) -> None:
    assert read_text(data).text == text
    with open_text(io.BytesIO(data)) as file:
        assert file.read() == text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_a_byte_order_mark_says_the_encoding_and_is_left_out(encoding: str) -> None:
    data = (b"\xfe\xff" if encoding == "utf-16-be" else b"") + TEXT.encode(encoding)
    assert read_text(data).text == TEXT
    with open_text(io.BytesIO(data)) as file:
        assert file.readline() == "name,city\r\n"


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize(("data", "why"), [(b"a" * 50 + b"\0", "kind"), (b"\x01\x02\xff\xfe\x90", "encoding")])
def test_what_is_not_text_is_refused_before_anything_of_it_is_read(data: bytes, why: str) -> None:
    for read in (read_text, lambda data: open_text(io.BytesIO(data))):
        with pytest.raises(NotText) as refused:
            read(data)
        assert refused.value.why == why


@pytest.mark.parametrize("data", [b"\xff\xfea", b"\xff\xfea\0\0\0", b"\xef\xbb\xbf\xff"])
def test_a_file_that_is_not_what_its_mark_says_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="encoding"):
        open_text(io.BytesIO(data))
