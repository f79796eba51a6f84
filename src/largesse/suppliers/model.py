"""Types of suppliers and their answers, and the rules for the outcome of an order. Without I/O."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID, uuid5

import msgspec

from largesse.base.confidential import Confidential
from largesse.jobs.job_loop import Schedule
from largesse.lines.states import LineKey
from largesse.webhooks.transport import HttpTransport

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
NAME_RULE = "must have 1 to 40 lower-case letters, digits and hyphens, and begin with a letter"
LONGEST_NUMBER = 100  # the most characters of a voucher number or PIN
MOST_COST_MINOR = 10**12


class SupplierLine(Confidential, frozen=True):
    """The request to a supplier for one voucher worth `value_minor` of `currency`. `id` is the same in every call about it."""

    id: str
    product: str  # the product's key in the seed file
    value_minor: int
    currency: str
    country: str
    recipient_email: str | None = None  # only for a supplier that `needs_recipient`


class Pending(msgspec.Struct, frozen=True):
    """The supplier has the order, and there is no voucher yet."""


class Bought(Confidential, frozen=True):
    """The supplier has delivered. `id` is the id of the order in its answer. The cost is in minor units."""

    id: str
    number: str
    pin: str | None = None
    use_by: date | None = None
    cost_minor: int | None = None
    cost_currency: str | None = None


class Refused(msgspec.Struct, frozen=True):
    """The supplier will not deliver this order, now or later."""


class Unknown(msgspec.Struct, frozen=True):
    """The supplier does not have this order."""


class Cancelled(msgspec.Struct, frozen=True):
    """The supplier has cancelled the order and charges nothing for it."""


class NotCancellable(msgspec.Struct, frozen=True):
    """The supplier cannot cancel this order any more, or never can."""


Answer = Pending | Bought | Refused | Unknown | Cancelled | NotCancellable


class SupplierFailed(Exception):
    """A call without a clear answer. `error` is one word for logs; `arrived` is False if the request certainly did not arrive."""

    def __init__(self, error: str, *, arrived: bool = True) -> None:
        super().__init__(error)
        self.error = error
        self.arrived = arrived


class Offer(msgspec.Struct, frozen=True):
    """A product of a supplier's catalogue; amounts in major units of `currency`."""

    sku: str
    name: str
    currency: str
    countries: tuple[str, ...]
    amounts: tuple[str, ...]


class Balance(msgspec.Struct, frozen=True):
    """The balance at a supplier, in minor units."""

    amount_minor: int
    currency: str


class Setup(Confidential, frozen=True):
    """The arguments for a kind of supplier. `transport` sends requests only to public addresses and to the allowed networks."""

    name: str
    options: Mapping[str, Any]
    secrets: Mapping[str, str]
    transport: HttpTransport


class Supplier(Protocol):
    """Sells vouchers. Calls may run at the same time; each raises SupplierFailed if the answer is unclear."""

    needs_recipient: bool  # whether `order` needs the recipient's address

    async def order(self, line: SupplierLine) -> Answer:
        """Orders the voucher. Called at most once for each `line.id`."""
        ...

    async def poll(self, line: SupplierLine) -> Answer:
        """Returns the state of the order."""
        ...

    async def cancel(self, line: SupplierLine) -> Answer:
        """Cancels the order."""
        ...

    async def catalogue(self) -> list[Offer]:
        """Returns the products that the supplier sells."""
        ...

    async def balance(self) -> Balance | None:
        """Returns the balance at the supplier; None if the supplier does not report one."""
        ...


class State(StrEnum):
    """The state of a supplier order; migration 0072 says what each means."""

    NEW = "new"
    ASKED = "asked"
    PENDING = "pending"
    CANCELLING = "cancelling"
    DELIVERED = "delivered"
    REFUSED = "refused"
    LOST = "lost"
    CANCELLED = "cancelled"
    LATE = "late"
    RETURNED = "returned"
    KEPT = "kept"


OPEN = frozenset({State.NEW, State.ASKED, State.PENDING, State.CANCELLING})
WATCHED = frozenset({State.LOST, State.CANCELLED})
NOT_CANCELLABLE = "not_cancellable"  # the reason why an order is polled without a time limit

_NAMESPACE = UUID("5f0b6f6e-3c0e-4f57-9d0a-0d6a6f0f7c11")
_AGAIN = Schedule(first_s=2.0, factor=2.0, cap_s=900.0)
# The pauses in seconds between checks of an order that the supplier did not have.
WATCH_S = (60.0, 600.0, 3_600.0, 21_600.0, 86_400.0)


class RetryPolicy(msgspec.Struct, frozen=True):
    """The times of polling and giving up for a supplier, from its description. `pace` multiplies the pauses; tests make it small."""

    poll_s: float = 15.0
    unknown_after_s: float = 60.0  # until then, an `unknown` order may still be on its way to the supplier
    give_up_after_s: float = 86_400.0
    attempts: int = 3
    failures: int = 8
    pace: float = 1.0


class SupplierOrder(msgspec.Struct, frozen=True):
    """A leased supplier order, with its state before the call."""

    customer_id: int
    id: int
    fence: int
    state: State
    line: LineKey
    supplier: str
    attempt: int
    product_id: int
    wanted: SupplierLine
    created_at: datetime
    asked_at: datetime | None
    failures: int
    reason: str | None


class Outcome(Confidential, frozen=True):
    """The next state of an order. It is due again after `again_s`, never if that is None. `failures` counts unclear answers in a row."""

    state: State
    again_s: float | None
    failures: int = 0
    reason: str | None = None
    bought: Bought | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the next attempt or the next supplier follows, if the order was open until now."""
        return self.state in {State.REFUSED, State.LOST, State.CANCELLED}


def supplier_order_id(line: LineKey, supplier: str, attempt: int, since: datetime) -> UUID:
    """Returns the id of an order for the supplier. It follows from the line, the time at which it was settled, the supplier and the attempt."""
    return uuid5(_NAMESPACE, f"{'/'.join(map(str, line))}/{since.timestamp():.6f}/{supplier}/{attempt}")


def next_step(
    suppliers: Sequence[str], supplier: str, attempt: int, *, again: bool, attempts: int
) -> tuple[str, int] | None:
    """Returns the next supplier for a product and the number of the attempt there; None after the last.

    With `again`, the order was lost, and the same supplier may get another attempt. After a supplier that is no longer listed, there is none.
    """
    if again and attempt < attempts:
        return supplier, attempt + 1
    names = list(suppliers)
    later = names[names.index(supplier) + 1 :] if supplier in names else []
    return (later[0], 1) if later else None


def judge(order: SupplierOrder, answer: Answer | SupplierFailed, now: datetime, policy: RetryPolicy) -> Outcome:
    """Returns the outcome of an answer for an order. The caller has checked the voucher in it."""
    if order.state is State.LATE:
        return _judge_late(order, answer, policy)
    if order.state in WATCHED:
        return _judge_watched(order, answer, policy)
    if isinstance(answer, Bought):
        return Outcome(State.DELIVERED, None, bought=answer)
    if order.state is State.CANCELLING:
        return _judge_cancelling(order, answer, policy)
    if isinstance(answer, SupplierFailed):
        return _judge_failure(order, answer, policy)
    if isinstance(answer, Refused):
        return Outcome(State.REFUSED, None, reason="refused")
    if isinstance(answer, Cancelled):
        return Outcome(State.CANCELLED, _watch_s(0, policy), reason="cancelled_there")
    return _judge_open(order, answer, now, policy)


def _judge_open(order: SupplierOrder, answer: Answer, now: datetime, policy: RetryPolicy) -> Outcome:
    """Returns the outcome for an order that the supplier still has, may have, or does not have."""
    if isinstance(answer, Unknown) and order.state is not State.NEW:
        asked_s = (now - order.asked_at).total_seconds() if order.asked_at else policy.unknown_after_s
        if asked_s >= policy.unknown_after_s:
            return Outcome(State.LOST, _watch_s(0, policy), reason="not_there")
        return Outcome(order.state, min(policy.poll_s, policy.unknown_after_s) * policy.pace, reason=order.reason)
    waited_s = (now - order.created_at).total_seconds()
    if isinstance(answer, Pending) and waited_s >= policy.give_up_after_s and order.reason != NOT_CANCELLABLE:
        return Outcome(State.CANCELLING, 0.0, reason="too_slow")
    state = State.ASKED if isinstance(answer, Unknown | NotCancellable) else State.PENDING
    return Outcome(state, policy.poll_s * policy.pace, reason=order.reason)


def _judge_failure(order: SupplierOrder, failed: SupplierFailed, policy: RetryPolicy) -> Outcome:
    failures = order.failures + 1
    again_s = _AGAIN.delay_s(failures) * policy.pace
    if order.state is not State.NEW:
        if failed.error in BAD_VOUCHERS and failures >= policy.failures:
            if order.reason == NOT_CANCELLABLE:  # the voucher is paid, but useless, so the line needs another one
                return Outcome(State.LOST, _watch_s(0, policy), reason=failed.error)
            return Outcome(State.CANCELLING, 0.0, reason=failed.error)
        return Outcome(order.state, again_s, failures, order.reason or failed.error)
    if failed.arrived:
        return Outcome(State.ASKED, again_s, 0, failed.error)
    if failures >= policy.failures:
        return Outcome(State.REFUSED, None, failures, "unreachable")
    return Outcome(State.NEW, again_s, failures, failed.error)


def _judge_cancelling(order: SupplierOrder, answer: Answer | SupplierFailed, policy: RetryPolicy) -> Outcome:
    if isinstance(answer, Cancelled):
        return Outcome(State.CANCELLED, _watch_s(0, policy), reason=order.reason)
    if isinstance(answer, Unknown):
        return Outcome(State.LOST, _watch_s(0, policy), reason=order.reason)
    if isinstance(answer, Refused):
        return Outcome(State.REFUSED, None, reason="refused")
    if isinstance(answer, NotCancellable):
        return Outcome(State.PENDING, policy.poll_s * policy.pace, reason=NOT_CANCELLABLE)
    return Outcome(State.CANCELLING, _AGAIN.delay_s(order.failures + 1) * policy.pace, order.failures + 1, order.reason)


def _judge_watched(order: SupplierOrder, answer: Answer | SupplierFailed, policy: RetryPolicy) -> Outcome:
    has_it = isinstance(answer, Bought | Pending) or (
        isinstance(answer, SupplierFailed) and answer.error in BAD_VOUCHERS
    )
    if has_it:
        return Outcome(State.LATE, 0.0, reason=order.reason)
    if isinstance(answer, SupplierFailed):
        return Outcome(order.state, _watch_s(0, policy), order.failures, order.reason)
    looked = order.failures + 1
    return Outcome(order.state, _watch_s(looked, policy), looked, order.reason)


def _judge_late(order: SupplierOrder, answer: Answer | SupplierFailed, policy: RetryPolicy) -> Outcome:
    if isinstance(answer, Cancelled | Unknown | Refused):
        return Outcome(State.RETURNED, None, reason=order.reason)
    if isinstance(answer, Bought):
        return Outcome(State.KEPT, None, reason=order.reason, bought=answer)
    if isinstance(answer, SupplierFailed) and answer.error in BAD_VOUCHERS and order.failures + 1 >= policy.failures:
        return Outcome(State.KEPT, None, reason=answer.error)
    return Outcome(State.LATE, _AGAIN.delay_s(order.failures + 1) * policy.pace, order.failures + 1, order.reason)


def _watch_s(looked: int, policy: RetryPolicy) -> float | None:
    return WATCH_S[looked] * policy.pace if looked < len(WATCH_S) else None


# Faults of a delivered voucher, as logs and metrics name them.
FOREIGN, TWICE, MALFORMED, OTHER_VALUE = "foreign_voucher", "voucher_twice", "malformed_voucher", "other_value"
EXPIRED = "expired_voucher"
BAD_VOUCHERS = frozenset({FOREIGN, TWICE, MALFORMED, OTHER_VALUE, EXPIRED})
# Years of a last day; in others, such as 1970-01-01 or 9999-12-31, it means that there is none.
_FIRST_YEAR, _LAST_YEAR = 2000, 9998


def last_day_of(bought: Bought) -> date | None:
    """Returns the last day on which a voucher can be used; None if it has none."""
    is_day = bought.use_by is not None and _FIRST_YEAR <= bought.use_by.year <= _LAST_YEAR
    return bought.use_by if is_day else None


def fault_of(bought: Bought, line: SupplierLine, today: date) -> str | None:
    """Returns the fault of a delivered voucher; None if it has none. The database finds out if it was delivered before."""
    if bought.id != line.id:
        return FOREIGN
    last_day = last_day_of(bought)
    if last_day is not None and last_day < today:
        return EXPIRED
    texts = [bought.number] if bought.pin is None else [bought.number, bought.pin]
    if any(not 0 < len(text) <= LONGEST_NUMBER or not text.isprintable() or text != text.strip() for text in texts):
        return MALFORMED
    if bought.cost_minor is not None and not 0 <= bought.cost_minor <= MOST_COST_MINOR:
        return MALFORMED
    has_currency = bought.cost_currency is not None
    if has_currency != (bought.cost_minor is not None):
        return MALFORMED
    if bought.cost_currency is not None and not (len(bought.cost_currency) == 3 and bought.cost_currency.isalpha()):
        return MALFORMED
    return None
