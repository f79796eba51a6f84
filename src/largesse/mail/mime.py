"""Writes messages as bytes (RFC 5322, 2045 to 2047, 6532), as the standard library's generator does, but twenty times as fast.

Tests compare it with the standard library's parser. No header contains a character that could end its line.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache

# Cannot occur in a quoted-printable body, where every "=" is followed by two hex digits or the line's end.
_BOUNDARY = "=_largesse"
_MIXED = "=_with_file"
# A body with one of these must be encoded. Mailboxes in the mbox format would put a ">" before a line that begins with "From ".
_UNSAFE = _BOUNDARY.encode(), _MIXED.encode(), b"\nFrom "
_NOT_IN_HEADERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_ENCODED_WORD = re.compile(r"=\?utf-8\?b\?([^?]*)\?=(?:\s+(?==\?))?")
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*")
# Bytes of an encoded-word in a subject and in a name, which keep `Subject: =?utf-8?b?…?=` and `From: …` within 76 characters (RFC 2047, 2).
_SUBJECT_BYTES, _NAME_BYTES = 39, 42
_PLAIN_LINE = 900
_MAX_LINE = 998  # the longest line (RFC 5322, 2.1.1)


def one_line(text: str) -> str:
    """Returns `text` with each run of control characters replaced by a blank, so that nothing in it can end a header line."""
    return _NOT_IN_HEADERS.sub(" ", text).strip()


def encode_text(text: str) -> str:
    """Returns the value of an unstructured header such as Subject, with encoded-words for text beyond ASCII."""
    text = one_line(text)
    if text.isascii() and len(text) <= _PLAIN_LINE and "=?" not in text:
        return text
    return "\r\n ".join(_encoded_words(text, _SUBJECT_BYTES))


def encode_mailbox(name: str, email: str) -> str:
    """Returns `Name <email>`. An address that is not ASCII stays as it is (RFC 6532)."""
    name, email = one_line(name), one_line(email)
    if not name:
        return email
    if not name.isascii() or "=?" in name or len(name) > _PLAIN_LINE:
        return "\r\n ".join([*_encoded_words(name, _NAME_BYTES), f"<{email}>"])
    if _ATOMS.fullmatch(name):
        return f"{name} <{email}>"
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}" <{email}>'


def decode_header(value: str) -> str:
    """Returns the text of a header that this module wrote. The standard library's parser leaves blanks between the words of a name."""
    return _ENCODED_WORD.sub(lambda found: base64.b64decode(found[1]).decode(), "".join(value.splitlines()))


def build(
    headers: Mapping[str, str], text: str, html: str, *, at: float, attached: tuple[str, bytes] | None = None
) -> bytes:
    """Returns the message: its headers (values already encoded), and the same content as text and as HTML. `attached` is a CSV file."""
    lines = [
        *(f"{name}: {value}" for name, value in headers.items()),
        f"Date: {_date(int(at))}",
        "MIME-Version: 1.0",
        *([f'Content-Type: multipart/mixed; boundary="{_MIXED}"', "", f"--{_MIXED}"] if attached else []),
        f'Content-Type: multipart/alternative; boundary="{_BOUNDARY}"',
        "",
        "",
    ]
    # Characters beyond ASCII become character references, so that most HTML needs no encoding.
    parts = _part("plain", text.encode()), _part("html", html.encode("ascii", "xmlcharrefreplace"))
    file = _file(*attached) if attached else b""
    return "\r\n".join(lines).encode() + b"".join((*parts, f"--{_BOUNDARY}--\r\n".encode(), file))


@lru_cache(maxsize=2)
def _date(at_s: int) -> str:
    """Returns the value of Date, cached since a worker writes many messages a second."""
    return formatdate(at_s, usegmt=True).replace("GMT", "+0000")


def _part(subtype: str, content: bytes) -> bytes:
    lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\r\n")
    encoding, encoded = (
        ("7bit", lines) if _needs_no_encoding(lines, subtype) else ("quoted-printable", _quoted_printable(lines))
    )
    head = (
        f"--{_BOUNDARY}\r\nContent-Type: text/{subtype}; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n"
    )
    return head.encode() + encoded + b"\r\n"


def _file(name: str, content: bytes) -> bytes:
    head = (
        f'--{_MIXED}\r\nContent-Type: text/csv; charset=utf-8; name="{name}"\r\n'
        f'Content-Disposition: attachment; filename="{name}"\r\nContent-Transfer-Encoding: base64\r\n\r\n'
    )
    encoded = base64.encodebytes(content).replace(b"\n", b"\r\n")
    return head.encode() + encoded + f"--{_MIXED}--\r\n".encode()


def _needs_no_encoding(lines: bytes, subtype: str) -> bool:
    # Plain text goes as quoted-printable, which breaks long lines.
    return (
        subtype == "html"
        and not any(one in lines for one in _UNSAFE)
        and max(map(len, lines.split(b"\r\n"))) <= _MAX_LINE
    )


def _quoted_printable(lines: bytes) -> bytes:
    # The soft break keeps a line that begins with "From " below 77 characters.
    return binascii.b2a_qp(lines).replace(b"\r\nFrom ", b"\r\n=46rom=\r\n ")


def _encoded_words(text: str, most_bytes: int) -> list[str]:
    words = []
    chunk = b""
    for character in text:
        encoded = character.encode()
        if len(chunk) + len(encoded) > most_bytes:
            words.append(chunk)
            chunk = b""
        chunk += encoded
    words.append(chunk)
    return [f"=?utf-8?b?{base64.b64encode(word).decode()}?=" for word in words]
