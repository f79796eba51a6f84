"""Where mail goes, as LARGESSE_SMTP_URL tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from largesse.base.settings import STARTTLS


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail goes, from LARGESSE_SMTP_URL. `starttls` None: if the server offers it."""

    host: str
    port: int
    username: str | None
    password: str | None = field(repr=False)
    tls: bool
    starttls: bool | None

    @classmethod
    def from_url(cls, url: str) -> MailServer:
        """The server of `smtp://user:pass@host:port?starttls=required` or `smtps://…`.

        With a password STARTTLS is required, unless the address says that it may travel in clear.
        """
        parts = urlsplit(url)
        tls = parts.scheme == "smtps"
        asked = parse_qs(parts.query).get("starttls")
        starttls = STARTTLS[asked[0].lower()] if asked else True if parts.password else None
        return cls(
            host=parts.hostname or "localhost",
            port=parts.port or (465 if tls else 587 if parts.username else 25),
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            tls=tls,
            starttls=False if tls else starttls,
        )
