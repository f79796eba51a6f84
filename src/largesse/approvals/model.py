"""The rules of approvals: which sends need which approvals, who may give them, and how many are needed.

Nobody approves their own send. A rule names its approvers, otherwise every administrator is one. An approval counts as long as its person may
still give it.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from largesse.customers.principal import ADMIN

ROLES = ("member", "admin")  # the roles that may send
NEEDED = (1, 2)
MOST_DAYS = 10  # a request lasts no longer, as a draft is deleted two weeks after its last change
WAITING, APPROVED, DECLINED, WITHDRAWN, EXPIRED = STATES = ("waiting", "approved", "declined", "withdrawn", "expired")


class SendFacts(NamedTuple):
    """The facts that decide which rules apply to a person's send."""

    customer_id: int
    environment: str
    role: str
    currency: str
    total_minor: int
    account_id: int | None
    product_id: int | None
    collection_id: int | None
    is_beyond_budget: bool


class ApprovalRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule by which sends need approval. A condition that is None or empty always holds."""

    customer_id: int
    id: int
    environment: str
    name: str
    role: str | None = None
    currency: str | None = None
    above_minor: int | None = None
    beyond_budget: bool = False
    account_ids: frozenset[int] = frozenset()
    product_ids: frozenset[int] = frozenset()
    collection_ids: frozenset[int] = frozenset()
    approver_ids: frozenset[int] = frozenset()
    needed: int = 1
    expires_days: int = 7

    def is_about(self, send: SendFacts) -> bool:
        """Returns whether the rule applies to a send: every condition holds."""
        return (
            (self.customer_id, self.environment) == (send.customer_id, send.environment)
            and self.role in (None, send.role)
            and (self.above_minor is None or (self.currency == send.currency and send.total_minor > self.above_minor))
            and (not self.beyond_budget or send.is_beyond_budget)
            and (not self.account_ids or send.account_id in self.account_ids)
            and (
                not (self.product_ids or self.collection_ids)
                or send.product_id in self.product_ids
                or send.collection_id in self.collection_ids
            )
        )

    def may_approve(self, user_id: int, role: str) -> bool:
        """Returns whether a person is one of its approvers. `may_decide` also excludes a person's own sends."""
        return user_id in self.approver_ids if self.approver_ids else role == ADMIN

    def is_met(self, approvals: Mapping[int, str], requester_id: int) -> bool:
        """Returns whether enough people have approved, given by user id and current role."""
        given = sum(one != requester_id and self.may_approve(one, role) for one, role in approvals.items())
        return given >= self.needed


class Grant(msgspec.Struct, frozen=True):
    """An approval that lets an order be placed: for the quoted send, at its price, by the rules that applied."""

    digest: bytes
    total_minor: int
    rule_ids: frozenset[int]

    def covers(self, rules: Iterable[ApprovalRule], digest: bytes | None, total_minor: int) -> bool:
        """Returns whether the approval covers an order under some rules."""
        is_same = digest == self.digest and total_minor == self.total_minor
        return is_same and {rule.id for rule in rules} <= self.rule_ids


class Excess(msgspec.Struct, frozen=True):
    """A budget that a send exceeds. `minor`, in minor units, is by how much the send is `over` it, or what it allows `per_gift`."""

    kind: str
    minor: int
    budget: str


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A send that needs, or needed, approval. It has the id of its draft, which its order gets too."""

    customer_id: int
    environment: str
    id: str
    round: int
    user_id: int
    state: str
    rule_ids: frozenset[int]
    quote: str
    digest: bytes
    total_minor: int
    currency: str
    gift_name: str
    code_count: int
    draft_changed_at: datetime
    asked_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    is_sent: bool  # an order was placed with its id
    excesses: tuple[Excess, ...] = ()  # when approval was requested
    has_draft: bool = True  # False once its draft is deleted, two weeks after its last change

    @property
    def is_waiting(self) -> bool:
        """Whether it may be approved or declined. If its rules ended, its person may have sent it without an approval."""
        return self.state == WAITING and not self.is_sent


class Decision(msgspec.Struct, frozen=True):
    """A decision of a person about a request."""

    user_id: int
    approves: bool
    note: str
    decided_at: datetime


def rules_of(send: SendFacts, rules: Iterable[ApprovalRule]) -> list[ApprovalRule]:
    """Returns the rules that apply to a send."""
    return [rule for rule in rules if rule.is_about(send)]


def may_decide(rules: Iterable[ApprovalRule], user_id: int, role: str, requester_id: int) -> bool:
    """Returns whether somebody may approve or decline a send under those rules."""
    return user_id != requester_id and any(rule.may_approve(user_id, role) for rule in rules)


def is_approved(rules: Collection[ApprovalRule], approvals: Mapping[int, str], requester_id: int) -> bool:
    """Returns whether every rule is met by these approvals."""
    return all(rule.is_met(approvals, requester_id) for rule in rules)


def can_be_met(rules: Iterable[ApprovalRule], people: Mapping[int, str], requester_id: int) -> bool:
    """Returns whether there are enough people, given by user id and role, to meet every rule."""
    return all(rule.is_met(people, requester_id) for rule in rules)


def rules_short_of(rules: Iterable[ApprovalRule], people: Mapping[int, str]) -> list[ApprovalRule]:
    """Returns the rules that too few of these people, given by user id and role, may approve."""
    return [rule for rule in rules if not rule.is_met(people, 0)]
