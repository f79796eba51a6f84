"""Every error Largesse raises on purpose. None knows how it is shown: a page, a response and a command may show the same.

    OperatorError              an operator's mistake: one line, then a non-zero exit
    ├── FileRefused         a file that cannot be taken
    └── MayNotAct           the login may not act as the role that this needs
    Problem                 what keeps a caller from getting what it asked for
    ├── InvalidRequest      what it asked for breaks a rule
    │   └── ApprovalRequired    a person's send that others approve first
    ├── Unauthorized        no API key that holds
    ├── PlanRequired        the customer's plan does not include the API
    ├── InsufficientBalance the funding account does not hold what it costs
    ├── Inactive            the service account has been switched off
    ├── OtherServiceAccount the order is another service account's to decide over
    ├── ScopeRequired       the API key is not for that
    ├── NetworkNotAllowed   the API key is not for use from there
    ├── OrderLimit          more than the service account may order at once
    ├── DailyLimit          more than the service account may order in a day
    ├── BudgetExceeded      more than is left of a budget, or than it allows for a gift
    ├── NotFound            there is nothing of that name, or it is somebody else's
    ├── ReferenceUsed       an order holds the external reference
    ├── QuoteChanged        the order is not the one that was quoted
    ├── QuoteExpired        the quote holds no longer
    ├── TooManyRequests     more than anybody may ask for, for so many seconds
    └── Unavailable         not now, for so many seconds

`largesse.web.kit.problems` says what each is over HTTP, and names those that only HTTP knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta


class OperatorError(Exception):
    """What an operator must put right before a command can run; its text is one line."""


class MayNotAct(OperatorError):
    """The login at the database may not act as the role that this needs."""


class FileRefused(OperatorError):
    """A file that cannot be taken. `code` says why and `values` where, for pages, which say it in their language."""

    def __init__(self, code: str, detail: str, **values: str | int) -> None:
        super().__init__(detail)
        self.code = code
        self.values = values


class FieldError(msgspec.Struct, frozen=True):
    """One of the members that are wrong."""

    pointer: Annotated[
        str, Meta(description="Which member, as a JSON pointer into the body", examples=["#/recipients/1/email"])
    ]
    detail: Annotated[
        str, Meta(description="What is wrong with it", examples=["`recipients[1].quantity` must be at most 1000."])
    ]


class Problem(Exception):
    """What keeps a caller from getting what it asked for: `detail` says it in a sentence that the caller reads.

    `slug` names the kind for programs, and in metrics. `errors` names the members that are wrong, where that is known.
    """

    slug: ClassVar[str]

    def __init__(self, detail: str, *, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)


class InvalidRequest(Problem):
    """What was asked for breaks a rule."""

    slug = "invalid-request"


class Unauthorized(Problem):
    """No API key, or none that holds here."""

    slug = "unauthorized"


class PlanRequired(Problem):
    """The customer's plan does not include the API."""

    slug = "plan-required"


class InsufficientBalance(Problem):
    """The funding account does not hold what the order costs."""

    slug = "insufficient-balance"


class Inactive(Problem):
    """The service account has been switched off."""

    slug = "inactive-service-account"


class OtherServiceAccount(Problem):
    """Another service account placed the order, and decides over it."""

    slug = "other-service-account"


class ScopeRequired(Problem):
    """The API key was made for other things."""

    slug = "scope-required"


class NetworkNotAllowed(Problem):
    """The API key is used from a network that it was not made for."""

    slug = "network-not-allowed"


class OrderLimit(Problem):
    """The order costs more than the service account may order at once."""

    slug = "order-limit"


class DailyLimit(Problem):
    """With what it has ordered today, the order costs more than the service account may order in a day."""

    slug = "daily-limit"


class BudgetExceeded(Problem):
    """The order costs more than is left of a budget, or a gift more than the budget allows.

    `left_minor` is what is left, None where a gift costs more than `per_gift_minor`.
    """

    slug = "budget-exceeded"

    def __init__(
        self,
        detail: str,
        *,
        budget: str,
        currency: str,
        left_minor: int | None = None,
        per_gift_minor: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.budget = budget
        self.currency = currency
        self.left_minor = left_minor
        self.per_gift_minor = per_gift_minor


class ApprovalRequired(InvalidRequest):
    """A person's send waits until others have approved it. `rules` are the names of the rules that say so."""

    def __init__(self, rules: Sequence[str]) -> None:
        super().__init__(f"The send needs approval: {', '.join(rules)}.")
        self.rules = tuple(rules)


class NotFound(Problem):
    """There is nothing of that name, or it is somebody else's: nobody can tell which.

    The one way to say so: look-ups raise it, and who asks them does not look at what comes back.
    """

    slug = "not-found"


class ReferenceUsed(Problem):
    """The order of the reference `holder` holds the external reference already."""

    slug = "reference-used"

    def __init__(self, detail: str, *, holder: str) -> None:
        super().__init__(detail)
        self.holder = holder


class QuoteChanged(Problem):
    """The order, or its price, is not what was quoted."""

    slug = "quote-changed"


class QuoteExpired(Problem):
    """The quote holds no longer."""

    slug = "quote-expired"


class StateConflict(Problem):
    """It cannot be done as things stand: it was done before, or comes too early or too late."""

    slug = "state-conflict"


class TooManyRequests(Problem):
    """More than anybody may ask for; `retry_after_s` seconds from now it may be asked for again."""

    slug = "too-many-requests"

    def __init__(self, detail: str, *, retry_after_s: float) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class Unavailable(Problem):
    """Nothing is wrong with what was asked for, but it cannot be had now; in `retry_after_s` seconds it may."""

    slug = "unavailable"

    def __init__(self, detail: str, *, retry_after_s: float = 1) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
