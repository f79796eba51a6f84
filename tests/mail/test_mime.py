"""Headers of messages, of whatever anybody wrote."""

from __future__ import annotations

import email
import email.policy
from email.header import decode_header, make_header
from email.utils import parseaddr

from hypothesis import given
from hypothesis import strategies as st

from largesse.mail import mime


@given(st.text(max_size=200))
def test_any_text_survives_in_a_header(text: str) -> None:
    raw = f"Subject: {mime.encode_text(text)}\r\n\r\n".encode()
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert list(message.keys()) == ["Subject"]
    assert " ".join(message["Subject"].split()) == " ".join(mime.one_line(text).split())


@given(st.text(max_size=200))
def test_any_name_survives_beside_an_address(name: str) -> None:
    raw = f"To: {mime.encode_mailbox(name, 'sam@example.com')}\r\n\r\n"
    message = email.message_from_string(raw, policy=email.policy.compat32)
    # The stdlib's newer parser keeps the blanks between encoded-words of a name (RFC 2047, 6.2 drops them).
    shown, address = parseaddr(str(message["To"]).replace("\r\n", ""))
    assert address == "sam@example.com"
    assert " ".join(str(make_header(decode_header(shown))).split()) == " ".join(mime.one_line(name).split())
