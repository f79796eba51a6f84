"""The actors in the demo's history: people of the customer, service accounts with their keys, the operator, and recipients.

Some recipients claim their gifts at once, some after days, some never. Fakes stand for the mail server, whose mail they read, and for
receivers of webhooks.
"""

import email
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from email.message import Message
from functools import partial
from ipaddress import IPv4Address
from random import Random
from urllib.parse import urlsplit

import msgspec

from largesse.audit.service import Acting, by_command, by_person
from largesse.customers.actor import Actor, command_actor, person_actor
from largesse.customers.authenticator import Caller, person_calls
from largesse.customers.members import bind_user, list_members
from largesse.customers.sessions import Person, begin_session, find_session
from largesse.customers.sign_in_store import add_person
from largesse.db.pool import Database
from largesse.db.scope import LOOKUP, OPERATOR
from largesse.demo.plan import Timeline
from largesse.fulfilment.gifts import GiftStep, NotPossible
from largesse.lines.attempts import Attempt, read_typed_code, read_typed_pin
from largesse.lines.claiming import Claim, Outcome
from largesse.lines.states import LineKey
from largesse.mail.server import MailServer
from largesse.mail.smtp import DOT, RCPT, Allow, Handover, SmtpTransport
from largesse.orders.order import SendResponse
from largesse.web.claim.addresses import check_address
from largesse.web.kit.page_services import PageServices
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


ENVIRONMENT = "production"
_AGAIN_AFTER = timedelta(days=10)  # people sign in again after this time, before their session ends
_ADDRESS = "192.0.2.17"
_BROWSER = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Gecko/20100101 Firefox/140.0"


class _SignedIn(msgspec.Struct, frozen=True):
    person: Person
    since: datetime


class People(msgspec.Struct):
    """The actors of one customer. `secrets` are the API keys, by service account. `ids` are those of the seed file, by key."""

    services: PageServices
    operators: Database
    timeline: Timeline
    ids: Mapping[str, Mapping[str, int]]
    customer_id: int
    secrets: Mapping[str, str]
    _signed_in: dict[str, _SignedIn] = {}

    async def person(self, email: str) -> Person:
        """Returns the person with that address, and signs them in every few days."""
        before = self._signed_in.get(email)
        if before is not None and self.timeline.now - before.since < _AGAIN_AFTER:
            return before.person
        async with self.operators.transaction(OPERATOR) as connection:
            members = await list_members(connection, self.customer_id)
            user_id = next(one.id for one in members if one.email == email)
            person_id = await add_person(connection, email)
            await bind_user(connection, user_id, person_id)
        async with self.services.database.transaction(LOOKUP) as connection:
            secret = await begin_session(
                connection, person_id, user_id, ENVIRONMENT, address=_ADDRESS, browser=_BROWSER
            )
        session = await find_session(self.services.database, secret)
        assert session is not None, "it was just begun"
        assert session.person is not None, "it is for a customer"
        self._signed_in[email] = _SignedIn(session.person, self.timeline.now)
        return session.person

    async def actor(self, email: str) -> Actor:
        """Returns the person as the actor of an operation."""
        person = await self.person(email)
        who = by_person(person.user_id, person.email, _ADDRESS, None)
        return person_actor(self.services.database, person, Acting(who, self.services.chains))

    def operator(self, command: str) -> Actor:
        """Returns the operator as the actor of that command, on behalf of the customer."""
        acting = Acting(by_command(command), self.services.chains)
        return command_actor(self.operators, acting).on_behalf_of(self.customer_id, ENVIRONMENT)

    async def caller(self, sender: str) -> Caller:
        """Returns the caller of an order: a person by their address, or a service account by its key."""
        if secret := self.secrets.get(sender):
            return await self.services.authenticator.authenticate(secret, "198.51.100.7")
        person = await self.person(sender)
        return await self.services.database.read(
            person.scope,
            person_calls,
            user_id=person.user_id,
            customer_id=person.customer_id,
            environment=person.environment,
            session_id=person.session_id,
            address=_ADDRESS,
        )


_STREET = {"street_address": "1 High Street", "city": "Leeds", "postal_code": "LS1 4DY"}
_NEVER, _ONLY_OPENED, _NEVER_CHOOSES = 0.16, 0.24, 0.06
_THANKFUL = 0.12
_NOTES = (
    "Thank you so much, this made my day!",
    "What a lovely surprise. I will use it for a long breakfast on Saturday.",
    "Thank you all! It is a pleasure to work with you.",
    "How kind of you. My daughter has already decided what we will get.",
    "Merci beaucoup !",
    "Thanks a lot. I did not expect that at all, and it came on just the right day.",
)
_HOURS_TO_CLAIM = 14.0  # the average; half of the recipients take less than 70 % of it


class Recipients(msgspec.Struct):
    """Reads the mail that arrives, and opens gifts."""

    services: PageServices
    timeline: Timeline
    mail: DemoMailServer
    _letters: Counter[str] = msgspec.field(default_factory=Counter)

    def read_mail(self) -> None:
        """Plans what recipients do with the mail that arrived, the same at each start."""
        letters, self.mail.inbox = self.mail.inbox, []
        for letter in letters:
            self._letters[letter.email] += 1
            chance = Random(f"{letter.email} {self._letters[letter.email]}")  # noqa: S311 - no secret
            fate = chance.random()
            if fate < _NEVER:
                continue
            minutes = chance.expovariate(1 / _HOURS_TO_CLAIM) * 60 + 2
            if fate < _ONLY_OPENED:
                self.timeline.after(minutes, partial(self.services.claiming.open, letter.token))
            else:
                self.timeline.after(minutes, partial(self._claim, letter, chance))

    def hand_out(self, response: SendResponse) -> None:
        """Plans the claims of a batch of codes. Most people type the code that they get."""
        for number, code in enumerate(response.codes):
            chance = Random(f"batch {number}")  # noqa: S311 - no secret
            if chance.random() < 0.7:
                minutes = chance.expovariate(1 / 4000) + 30
                self.timeline.after(minutes, partial(self._type, code.code, code.pin, chance))

    async def _claim(self, letter: Received, chance: Random) -> None:
        code, customer_id = self.services.vault.code_of_token(letter.token)
        await self._attempt(Attempt(code, read_typed_pin(letter.pin), _host(chance), customer_id), chance)

    async def _type(self, code: str, pin: str, chance: Random) -> None:
        await self._attempt(Attempt(read_typed_code(code), read_typed_pin(pin), _host(chance), None), chance)

    async def _attempt(self, attempt: Attempt, chance: Random) -> None:
        claim: Claim = await self.services.claiming.claim(attempt, None)
        if claim.outcome is not Outcome.CLAIMED or claim.line is None:
            return
        gifts = self.services.gifts
        gift = await gifts.read(claim.line)
        if gift is not None and gift.step is GiftStep.CHOOSE and chance.random() > _NEVER_CHOOSES:
            chosen = chance.choice(gift.choices)
            await gifts.choose(claim.line, chosen.id, None)
            gift = None if chosen.is_digital else await gifts.read(claim.line)
        if gift is not None and gift.step is GiftStep.ADDRESS:
            checked = check_address(gift.line.country, {"name": gift.line.recipient_name or "Sam Doe", **_STREET})
            await gifts.deliver_to(claim.line, checked.address, None, None)
        if chance.random() < _THANKFUL:
            self.timeline.after(chance.expovariate(1 / 90) + 1, partial(self._thank, claim.line, chance.choice(_NOTES)))

    async def _thank(self, line: LineKey, note: str) -> None:
        with suppress(NotPossible):
            await self.services.gifts.thank(line, note)


def _host(chance: Random) -> str:
    return f"203.0.113.{chance.randint(1, 250)}"
