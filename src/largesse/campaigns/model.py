"""A campaign, who may take part in it, and the limits on both."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from largesse.base.cooperative import Steps
from largesse.base.email import EmailError, email_key, is_mistyped, normalise_email
from largesse.base.errors import InvalidRequest
from largesse.base.text import trimmed, unfit
from largesse.orders.placeholders import has_placeholders
from largesse.orders.recipients import MAX_CODES

SOURCE = "campaign"
MOST_CAMPAIGNS = 100  # campaigns that have not ended, per customer and environment
MOST_NAME = 60  # characters
MOST_GREETING = 500
MOST_GIFTS = MAX_CODES
MOST_DOMAINS = 20
MOST_ADDRESSES = 10_000
LONGEST = timedelta(days=366)  # the longest time from its first day to its last
MOST_AHEAD = timedelta(days=366)  # how far in the future it may begin
CODE_LASTS = timedelta(minutes=15)
CODES_OF_MAILBOX = 5  # codes mailed to a mailbox in an hour
CODES_OF_CAMPAIGN = 20_000  # codes mailed for a campaign in an hour
_SHOWN_WRONG = 10  # addresses that a refusal names
_SEPARATORS = re.compile(r"[\s,;]+")
_PARTS = re.compile(r"[;\n]")
# What people type around a domain, and what copying leaves around an address, or as the bullet of a list.
_NOT_OF_MAIL = re.compile(r"^(?:@|(?:https?://)?www\.(?=.+\.)|https?://)|(?<=\w)[./]$", re.IGNORECASE)
_BEFORE_ADDRESS = re.compile(r"""["'\u2018\u201c\u201e\xab(]*(?:mailto:)?""", re.IGNORECASE)
_AFTER_ADDRESS = ".\"'\u2019\u201d\u201c\xbb)"
_BULLET = re.compile(r"[\W\d_]{1,5}")
_QUOTES = ('"', "'")


class State(StrEnum):
    """The state of a campaign."""

    DRAFT = "draft"
    """Nothing is reserved: its gifts were not ordered, or wait for approval."""
    SCHEDULED = "scheduled"
    OPEN = "open"
    PAUSED = "paused"
    FULL = "full"
    ENDING = "ending"
    """Its time is over, and its rest is being refunded."""
    ENDED = "ended"


class CampaignFault(InvalidRequest):
    """A field of a campaign is wrong: `field` is its name, and `wrong` the entries of a list that cannot be read."""

    def __init__(self, field: str, detail: str, wrong: Sequence[str] = ()) -> None:
        super().__init__(f"`{field}` {detail}")
        self.field = field
        self.wrong = tuple(wrong)


class CampaignRule(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a campaign."""

    name: str
    template_id: int
    account_id: int | None
    gifts: int
    opens_at: datetime
    closes_at: datetime
    greeting: str | None = None
    domains: tuple[str, ...] = ()  # empty: `mailboxes` may take part instead
    mailboxes: tuple[str, ...] = ()


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign as it is stored."""

    customer_id: int
    id: int
    environment: str
    name: str
    user_id: int
    token: str
    order_reference: str
    gifts: int
    given_through: int
    greeting: str | None
    domains: list[str]
    opens_at: datetime
    closes_at: datetime
    paused_at: datetime | None
    ended_at: datetime | None
    created_at: datetime
    owner: str | None = None  # the name of the person who reserved it

    def state(self, now: datetime, *, is_ordered: bool, has_left: bool) -> State:
        """Returns the state, given whether its gifts were ordered, and whether one is left."""
        if self.ended_at is not None:
            return State.ENDED
        if self.closes_at <= now:
            return State.ENDING if is_ordered else State.ENDED
        if not is_ordered:
            return State.DRAFT
        if self.paused_at is not None:
            return State.PAUSED
        if self.opens_at > now:
            return State.SCHEDULED
        return State.OPEN if has_left else State.FULL


def mailbox_of(email: str) -> str:
    """Returns the key of all spellings of a mailbox: without a part after a plus sign, and with letter case ignored."""
    local, _, domain = email_key(email).rpartition("@")
    return f"{local.partition('+')[0] or local}@{domain}"


def read_domains(text: str) -> tuple[str, ...]:
    """Returns the domains in a text, in their normal form. Raises CampaignFault."""
    found, wrong = [], []
    for one in _words(text):
        try:
            found.append(normalise_email(f"x@{_NOT_OF_MAIL.sub('', one)}").rpartition("@")[2].lower())
        except EmailError:
            wrong.append(one)
    if wrong:
        raise CampaignFault("domains", "contains something that is not a domain.", wrong[:_SHOWN_WRONG])
    domains = tuple(dict.fromkeys(found))
    if len(domains) > MOST_DOMAINS:
        raise CampaignFault("domains", f"must be at most {MOST_DOMAINS} domains.")
    return domains


def read_mailboxes(text: str) -> Steps[tuple[str, ...]]:
    """Returns the mailboxes of the addresses in a text, such as a pasted list with or without names. Raises CampaignFault."""
    found: dict[str, None] = {}
    wrong = []
    for part in _PARTS.split(text):
        for one in _addresses_in(part):
            word = trimmed(one)
            begins = _BEFORE_ADDRESS.match(word)
            address = word[begins.end() if begins else 0 :].rstrip(_AFTER_ADDRESS)
            normal = None
            with contextlib.suppress(EmailError):
                normal = None if is_mistyped(address) else normalise_email(address)
            if normal is not None:
                found[mailbox_of(normal)] = None
            elif "@" in one or not _BULLET.fullmatch(one):
                wrong.append(one)
            yield
    if wrong:
        raise CampaignFault("addresses", "contains something that is not an e-mail address.", wrong[:_SHOWN_WRONG])
    if len(found) > MOST_ADDRESSES:
        raise CampaignFault("addresses", f"must be at most {MOST_ADDRESSES:,} addresses.")
    return tuple(found)


def check_rule(rule: CampaignRule, now: datetime) -> None:
    """Raises CampaignFault for the first invalid field of a rule."""
    for field, is_right, detail in (
        ("name", 0 < len(rule.name) <= MOST_NAME, f"must have 1 to {MOST_NAME} characters."),
        ("name", not unfit(rule.name), "has characters that cannot be used."),
        ("gifts", 1 <= rule.gifts <= MOST_GIFTS, f"must be 1 to {MOST_GIFTS:,}."),
        ("greeting", len(rule.greeting or "") <= MOST_GREETING, f"must have at most {MOST_GREETING} characters."),
        (
            "greeting",
            not has_placeholders(rule.greeting),
            "must have no placeholder, because visitors are not contacts.",
        ),
        ("greeting", not unfit(rule.greeting or "", line_breaks=True), "has characters that cannot be used."),
        ("opens", rule.opens_at <= now + MOST_AHEAD, f"must be at most {MOST_AHEAD.days} days away."),
        ("closes", rule.closes_at > max(now, rule.opens_at), "must be later than now, and than it opens."),
        ("closes", rule.closes_at - max(now, rule.opens_at) <= LONGEST, f"must be at most {LONGEST.days} days later."),
        ("domains", bool(rule.domains) != bool(rule.mailboxes), "or `addresses` must say who may take part."),
    ):
        if not is_right:
            raise CampaignFault(field, detail)


def _addresses_in(part: str) -> Iterator[str]:
    """Yields the text in angle brackets, and addresses beside it. Other words beside brackets are a name.

    Yields all words if there are no brackets.
    """
    if "<" not in part:
        yield from _words(part)
        return
    for piece in part.split(">"):
        beside, bracket, address = piece.partition("<")
        beside = beside.rstrip()
        if beside.endswith(_QUOTES):  # a quoted name, which may be an address
            beside = beside[: max(0, beside.rfind(beside[-1], 0, -1))]
        if "@" in beside:
            yield from (word for word in _words(beside) if "@" in word)
        if bracket:
            yield address


def _words(text: str) -> list[str]:
    return [word for word in _SEPARATORS.split(text) if word]
