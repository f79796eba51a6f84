"""The errors that Largesse raises on purpose. They do not depend on how they are shown: by a page, a response or a command.

`largesse.web.kit.problems` maps each to an HTTP status, and adds those that only HTTP has.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta


class OperatorError(Exception):
    """An operator must correct something before a command can run. The text is one line."""


class MayNotAct(OperatorError):
    """The database login may not act as the required role."""


class FileRefused(OperatorError):
    """A file cannot be read. `code` says why, and `values` where. Pages translate them."""

    def __init__(self, code: str, detail: str, **values: str | int) -> None:
        super().__init__(detail)
        self.code = code
        self.values = values


class FieldError(msgspec.Struct, frozen=True):
    """One invalid member of a request."""

    pointer: Annotated[
        str, Meta(description="Which member, as a JSON pointer into the body", examples=["#/recipients/1/email"])
    ]
    detail: Annotated[
        str, Meta(description="What is wrong with it", examples=["`recipients[1].quantity` must be at most 1000."])
    ]


class Problem(Exception):
    """A refused request. `detail` explains it to the caller in a sentence.

    `slug` names the kind for programs and metrics. `errors` names the invalid members, if known.
    """

    slug: ClassVar[str]

    def __init__(self, detail: str, *, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)


class InvalidRequest(Problem):
    """The request breaks a rule."""

    slug = "invalid-request"


class BrokenRule(InvalidRequest):
    """One rule that the request breaks. `rule` is its `detail`."""

    rule: ClassVar[str]

    def __init__(self) -> None:
        super().__init__(self.rule)


class Unauthorized(Problem):
    """The API key is missing or unknown."""

    slug = "unauthorized"


class PlanRequired(Problem):
    """The customer's plan does not include the API."""

    slug = "plan-required"


class InsufficientBalance(Problem):
    """The balance of the funding account is too low for the order."""

    slug = "insufficient-balance"


class Inactive(Problem):
    """The service account is deactivated."""

    slug = "inactive-service-account"


class OtherServiceAccount(Problem):
    """Another service account placed the order."""

    slug = "other-service-account"


class ScopeRequired(Problem):
    """The API key lacks the scope."""

    slug = "scope-required"


class NetworkNotAllowed(Problem):
    """The API key is used from a network that it does not allow."""

    slug = "network-not-allowed"


class OrderLimit(Problem):
    """The order costs more than the service account may order at once."""

    slug = "order-limit"


class DailyLimit(Problem):
    """The order would bring the service account above its limit for one day."""

    slug = "daily-limit"


class BudgetExceeded(Problem):
    """The order costs more than the rest of a budget, or a gift costs more than the budget allows.

    `left_minor` is what is left of the budget, or None if a gift costs more than `per_gift_minor`.
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
    """A person's send needs the approval of others. `rules` names the approval rules that apply."""

    def __init__(self, rules: Sequence[str]) -> None:
        super().__init__(f"The send needs approval: {', '.join(rules)}.")
        self.rules = tuple(rules)


class NotFound(Problem):
    """There is nothing with that id or name, or it belongs to somebody else. The caller cannot tell which.

    Look-ups raise it, so that their callers need not check the result.
    """

    slug = "not-found"


class HasEnded(NotFound):
    """What would be changed, such as a campaign, has ended."""


class ReferenceUsed(Problem):
    """Another order has the external reference already. `holder` is the reference of that order."""

    slug = "reference-used"

    def __init__(self, detail: str, *, holder: str) -> None:
        super().__init__(detail)
        self.holder = holder


class QuoteChanged(Problem):
    """The order or its price differs from the quote."""

    slug = "quote-changed"


class QuoteExpired(Problem):
    """The quote is no longer valid."""

    slug = "quote-expired"


class StateConflict(Problem):
    """The state does not allow the action: it was done before, or comes too early or too late."""

    slug = "state-conflict"


class TooManyRequests(Problem):
    """The caller has reached a limit, and may try again in `retry_after_s` seconds."""

    slug = "too-many-requests"

    def __init__(self, detail: str, *, retry_after_s: float) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class Unavailable(Problem):
    """The request is valid, but the service cannot answer it now. Callers may try again in `retry_after_s` seconds.

    With `is_uncertain`, the request may have been carried out, or may still be.
    """

    slug = "unavailable"

    def __init__(self, detail: str, *, retry_after_s: float = 1, is_uncertain: bool = False) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
        self.is_uncertain = is_uncertain
