"""The address of the mail server: what it says about the login, encryption and connections."""

from __future__ import annotations

import pytest

from largesse.base.settings import load_settings
from largesse.mail.smtp import MailServer


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.example.com", ("mail.example.com", 25, None, None, False, None)),
        ("smtp://ada:p%40ss@mail.example.com", ("mail.example.com", 587, "ada", "p@ss", False, True)),
        ("smtp://ada:x@h:2525?starttls=false", ("h", 2525, "ada", "x", False, False)),
        ("smtp://h?starttls=true", ("h", 25, None, None, False, True)),
        ("smtp://h?starttls=Required", ("h", 25, None, None, False, True)),
        ("smtp://ada:x@h?starttls=optional", ("h", 587, "ada", "x", False, None)),
        ("smtp://h?starttls=never", ("h", 25, None, None, False, False)),
        ("smtps://ada:x@h", ("h", 465, "ada", "x", True, False)),
    ],
)
def test_a_password_travels_in_clear_only_when_told_to(url: str, expected: tuple[object, ...]) -> None:
    server = MailServer.from_url(url)
    assert (server.host, server.port, server.username, server.password, server.tls, server.starttls) == expected
    assert server.password is None or server.password not in repr(server)


@pytest.mark.parametrize(
    ("url", "connections"),
    [("smtp://h", 8), ("smtp://h?connections=1", 1), ("smtps://h?starttls=required&connections=20", 20)],
)
def test_how_many_connections_a_worker_opens_can_be_set(url: str, connections: int) -> None:
    assert load_settings({"LARGESSE_SMTP_URL": url}).smtp_url == url
    assert MailServer.from_url(url).connections == connections
