"""Headers of messages, of whatever anybody wrote."""

import email
import email.policy
from email.header import decode_header, make_header
from email.utils import parseaddr
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.mail import mime


@given(st.text(max_size=200))
def test_any_text_survives_in_a_header(text: str) -> None:
    raw = f"Subject: {mime.encode_text(text)}\r\n\r\n".encode()
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert list(message.keys()) == ["Subject"]
    assert all(len(line) <= 76 for line in raw.split(b"\r\n") if b"=?utf-8?" in line), "RFC 2047, 2"
    assert " ".join(message["Subject"].split()) == " ".join(mime.one_line(text).split())


@given(st.text(max_size=200))
def test_any_name_survives_beside_an_address(name: str) -> None:
    raw = f"To: {mime.encode_mailbox(name, 'sam@example.com')}\r\n\r\n"
    assert all(len(line) <= 74 for line in raw.split("\r\n") if "=?utf-8?" in line), (
        "From is longer by two (RFC 2047, 2)"
    )
    assert mime.decode_header(mime.encode_mailbox("\u0416" * 40 + name, "")).startswith("\u0416" * 40)
    message = email.message_from_string(raw, policy=email.policy.compat32)
    # The stdlib's newer parser keeps the blanks between encoded-words of a name (RFC 2047, 6.2 drops them).
    shown, address = parseaddr(str(message["To"]).replace("\r\n", ""))
    assert address == "sam@example.com"
    assert " ".join(str(make_header(decode_header(shown))).split()) == " ".join(mime.one_line(name).split())


def html_part(html: str) -> tuple[str, str]:
    """The encoding of the HTML of a message, and what its reader sees."""
    message = email.message_from_bytes(mime.build({"Subject": "x"}, "", html, at=0), policy=email.policy.default)
    assert [part.get_content_type() for part in message.walk()] == ["multipart/alternative", "text/plain", "text/html"]
    part = message.get_body(("html",))
    assert part is not None
    return part["Content-Transfer-Encoding"], part.get_content().rstrip("\r\n")


@pytest.mark.parametrize(
    ("html", "encoding"),
    [
        ("<p>£10 = 1 gift 🎁</p>", "7bit"),
        ("x" * 998, "7bit"),
        ("x" * 999, "quoted-printable"),
        ("£" * 166, "7bit"),  # as &#163;
        ("£" * 167, "quoted-printable"),
        ("one\nFrom two", "quoted-printable"),
        ("one\n--=_largesse\nContent-Type: text/html\n\ntwo", "quoted-printable"),
        ("one\n--=_largesse--\ntwo", "quoted-printable"),
    ],
)
def test_html_goes_as_it_is_unless_a_reader_could_misread_it(html: str, encoding: str) -> None:
    used, shown = html_part(html)
    assert (used, unescape(shown).replace("\r\n", "\n")) == (encoding, html)
