"""Decides whether a permanent refusal is because of the recipient, which is a bounce, or of the mail server, which can be corrected.

A misconfigured server (it wants a password, or does not relay for us) answers 5xx to every message. These messages must not be lost. The
enhanced status code (RFC 3463) decides, then the plain code (RFC 5321, 4.2.3). If a server sends neither, two patterns of words decide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from largesse.mail.smtp import DATA, DOT, MAIL, RCPT, Handover


class Fault(StrEnum):
    """The cause of a refusal."""

    RECIPIENT = "recipient"  # the address, or this one message: it bounces
    SERVER = "server"  # the server, or its trust in us: tried again by the schedule
    UNSURE = "unsure"  # the recipient's if the same connection takes another message, else the server's


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table. None or empty fields match anything. `status` is the start of the enhanced code."""

    fault: Fault
    why: str
    stages: Sequence[str] = ()
    status: str = ""
    codes: Sequence[int] = ()
    words: re.Pattern[str] | None = None
    is_plain: bool = False  # only where there is no enhanced code

    def fits(self, stage: str, code: int, status: str, text: str) -> bool:
        """Returns whether an answer matches the rule: its stage, reply code, enhanced status (may be empty) and text."""
        return (
            (not self.stages or stage in self.stages)
            and status.startswith(self.status)
            and (not self.codes or code in self.codes)
            and not (self.is_plain and status)
            and (self.words is None or self.words.search(text) is not None)
        )


_RELAY = re.compile(r"\brelay", re.IGNORECASE)
_NO_SUCH_USER = re.compile(
    r"\b(no such|unknown) (user|mailbox|recipient)\b|\b(user|mailbox|recipient) (unknown|not found)\b"
    r"|\bunrouteable address\b",
    re.IGNORECASE,
)
_RECIPIENT, _SERVER, _UNSURE = Fault.RECIPIENT, Fault.SERVER, Fault.UNSURE

# The first rule that matches decides.
RULES = (
    Rule(_SERVER, "our address is not well formed", status="5.1.7"),
    Rule(_SERVER, "the domain of our address is unknown", status="5.1.8"),
    Rule(_SERVER, "a password is wanted", codes=(530, 534, 535, 538)),
    Rule(_RECIPIENT, "the message is too large", status="5.3.4"),
    Rule(_RECIPIENT, "the message is too large for the mailbox", status="5.2.3"),
    Rule(_RECIPIENT, "the message is too large (RFC 1870)", (MAIL,), codes=(552,), is_plain=True),
    Rule(_RECIPIENT, "what the message is made of, such as an international address", status="5.6."),
    Rule(_SERVER, "our address may not send here", (MAIL,)),
    Rule(_UNSURE, "an address, but which one is not said", status="5.1.0"),
    Rule(_RECIPIENT, "the address does not exist", status="5.1."),
    Rule(_RECIPIENT, "the mailbox is full or switched off", status="5.2."),
    Rule(_SERVER, "the mail system is full, closed or set up wrongly", status="5.3."),
    Rule(_RECIPIENT, "there is no way to the address", status="5.4."),
    Rule(_UNSURE, "nothing more is said", status="5.5.0"),
    Rule(_SERVER, "the two do not speak the same protocol", status="5.5."),
    Rule(_SERVER, "we may not send, or not without a password", (RCPT, DATA), status="5.7."),
    Rule(_UNSURE, "spam, or our domain is not trusted", (DOT,), status="5.7."),
    Rule(_UNSURE, "nothing more is said", status="5."),
    Rule(_SERVER, "the server takes no mail (RFC 7504)", codes=(521,)),
    Rule(_SERVER, "the two do not speak the same protocol", codes=(500, 501, 502, 503, 504, 555)),
    Rule(_RECIPIENT, "the address is elsewhere, its mailbox full or its domain without mail", (RCPT,), codes=(551, 552, 556)),
    Rule(_SERVER, "it does not relay for us", (RCPT,), words=_RELAY),
    Rule(_RECIPIENT, "the address does not exist", (RCPT,), codes=(550, 553), words=_NO_SUCH_USER),
    Rule(_UNSURE, "nothing more is said"),
)  # fmt: skip

# At the beginning of a line, or at its end as qmail writes it.
_STATUS = re.compile(r"^(5\.\d{1,3}\.\d{1,3})\b|\(#(5\.\d{1,3}\.\d{1,3})\)", re.MULTILINE)


def rule_of(handover: Handover) -> Rule:
    """Returns the row of the table for a permanent refusal."""
    assert handover.code is not None
    found = _STATUS.search(handover.text)
    status = (found[1] or found[2]) if found else ""
    return next(rule for rule in RULES if rule.fits(handover.stage, handover.code, status, handover.text))
