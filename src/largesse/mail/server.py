"""The mail server, from LARGESSE_SMTP_URL. `serve` reads it for its warnings, without loading the mail client."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

from largesse.base.confidential import Confidential
from largesse.base.settings import MAIL_CONNECTIONS, STARTTLS


class MailServer(Confidential, frozen=True):
    """A mail server. If `starttls` is None, it is used if the server offers it. A worker opens at most `connections`."""

    host: str
    port: int
    username: str | None
    password: str | None
    tls: bool
    starttls: bool | None
    connections: int = MAIL_CONNECTIONS

    @classmethod
    def from_url(cls, url: str) -> MailServer:
        """Returns the server of `smtp://user:pass@host:port?starttls=required&connections=3` or `smtps://…`.

        With a password, STARTTLS is required unless the address allows plain text.
        """
        parts = urlsplit(url)
        tls = parts.scheme == "smtps"
        asked = parse_qs(parts.query)
        starttls = STARTTLS[asked["starttls"][0].lower()] if "starttls" in asked else True if parts.password else None
        return cls(
            host=parts.hostname or "localhost",
            port=parts.port or (465 if tls else 587 if parts.username else 25),
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            tls=tls,
            starttls=False if tls else starttls,
            connections=int(asked["connections"][0]) if "connections" in asked else MAIL_CONNECTIONS,
        )
