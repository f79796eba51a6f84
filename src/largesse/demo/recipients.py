"""The acts of recipients in the demo's history: some claim their gifts at once, some after days, some never."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random

from largesse.demo.outside import DemoMailServer, Received
from largesse.demo.timeline import Timeline
from largesse.fulfilment.gifts import GiftStep, NotPossible
from largesse.lines.attempts import Attempt, read_typed_code, read_typed_pin
from largesse.lines.claiming import Claim, Outcome
from largesse.lines.states import LineKey
from largesse.orders.order import SendResponse
from largesse.web.claim.addresses import check_address
from largesse.web.kit.services import Services

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
_HOURS_TO_CLAIM = 14.0  # on average; half of the recipients take less than 70 % of it


@dataclass(slots=True)
class Recipients:
    """Reads the mail that arrives, and opens gifts."""

    services: Services
    timeline: Timeline
    mail: DemoMailServer
    _letters: Counter[str] = field(default_factory=Counter)

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
        """Plans the claims of a batch of codes. Most people type in the code that they are given."""
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
