"""Fakes of external services for the demo's history: a mail server whose mail the recipients read, and receivers of webhooks."""

import email
import re
from collections.abc import Collection, Mapping, Sequence
from email.message import Message
from ipaddress import IPv4Address
from urllib.parse import urlsplit

import msgspec

from largesse.mail.server import MailServer
from largesse.mail.smtp import DOT, RCPT, Allow, Handover, SmtpTransport
from largesse.webhooks.outcomes import AttemptResult
from largesse.webhooks.targets import Address
from largesse.webhooks.transport import HttpTransport

_LINK = re.compile(r"/claim/([\w-]+)#pin=(\d{6})")
_CODE = re.compile(r"^(\d{6})\r?$", re.MULTILINE)
_SOMEWHERE = IPv4Address("1.1.1.1")  # a public address, to which nothing connects


class Received(msgspec.Struct, frozen=True):
    """A code that arrived by mail: the recipient's address, the token of the claim link, and the PIN."""

    email: str
    token: str
    pin: str


class DemoMailServer(SmtpTransport):
    """Accepts all messages except those to `unknown` addresses, and collects the links and codes in them."""

    def __init__(self, unknown: Collection[str]) -> None:
        super().__init__(MailServer.from_url("smtp://127.0.0.1:25"))
        self._unknown = unknown
        self.inbox: list[Received] = []
        self.codes: dict[str, str] = {}  # the last code of a campaign, by address

    @property
    def is_trusted(self) -> bool:
        """Whether the server has accepted a message."""
        return True

    async def hand_over(self, sender: str, recipient: str, message: bytes, allow: Allow) -> Handover:  # noqa: ARG002 - as its base has it
        """Accepts a message, or refuses its recipient."""
        if recipient in self._unknown:
            return Handover(RCPT, 550, "5.1.1 The email account that you tried to reach does not exist")
        await allow()
        text = _text_of(message)
        self.inbox += [Received(recipient, *found) for found in dict.fromkeys(_LINK.findall(text))]
        if code := _CODE.search(text):
            self.codes[recipient] = code[1]
        return Handover(DOT, 250, "2.0.0 Ok: queued")


def _text_of(message: bytes) -> str:
    """Returns the plain text of a message, which comes before its HTML."""
    text = email.message_from_bytes(message).get_payload(0)
    content = text.get_payload(decode=True) if isinstance(text, Message) else b""
    return content.decode() if isinstance(content, bytes) else ""


class DemoReceivers(HttpTransport):
    """Answers webhooks with status 200, or 503 for the hosts in `down`."""

    def __init__(self) -> None:
        super().__init__((), 1.0, somewhere)
        self.down: set[str] = set()

    async def post(self, target_url: str, body: bytes, headers: Mapping[str, str], customer_id: int) -> AttemptResult:  # noqa: ARG002 - as its base has it
        """Returns the response of the receiver."""
        if urlsplit(target_url).hostname in self.down:
            return AttemptResult(503, None, None, b"Service Unavailable", 0.041)
        return AttemptResult(200, None, None, b"ok", 0.083)


async def somewhere(host: str, customer_id: int) -> Sequence[Address]:  # noqa: ARG001 - as a resolver has it
    """Resolves every name to a fixed address, without a network."""
    return [_SOMEWHERE]
