"""The errors that Largesse raises on purpose. They do not depend on how they are shown: by a page, a response or a command.

`largesse.web.kit.problems` maps each to an HTTP status, and adds those that only HTTP has.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, TypeVar

import msgspec
from msgspec import Meta

_T = TypeVar("_T")


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
    """A refused request. `detail` explains it to the caller in a sentence: the rule of its kind, if there is only one.

    `slug` names the kind for programs and metrics. `errors` names the invalid members, if known.
    """

    slug: ClassVar[str]
    rule: ClassVar[str]

    def __init_subclass__(cls, *, slug: str | None = None, rule: str | None = None) -> None:
        super().__init_subclass__()
        if slug is not None:
            cls.slug = slug
        if rule is not None:
            cls.rule = rule

    def __init__(self, detail: str | None = None, *, errors: Sequence[FieldError] = ()) -> None:
        self.detail = self.rule if detail is None else detail
        super().__init__(self.detail)
        self.errors = tuple(errors)


class InvalidRequest(Problem, slug="invalid-request"):
    """The request breaks a rule."""


class Unauthorized(Problem, slug="unauthorized"):
    """The API key is missing or unknown."""


class PlanRequired(Problem, slug="plan-required"):
    """The customer's plan does not include the API."""


class InsufficientBalance(Problem, slug="insufficient-balance"):
    """The balance of the funding account is too low for the order."""


class Inactive(Problem, slug="inactive-service-account"):
    """The service account is deactivated."""


class OtherServiceAccount(Problem, slug="other-service-account"):
    """Another service account placed the order."""


class ScopeRequired(Problem, slug="scope-required"):
    """The API key lacks the scope."""


class NetworkNotAllowed(Problem, slug="network-not-allowed"):
    """The API key is used from a network that it does not allow."""


class OrderLimit(Problem, slug="order-limit"):
    """The order costs more than the service account may order at once."""


class DailyLimit(Problem, slug="daily-limit"):
    """The order would bring the service account above its limit for one day."""


class BudgetExceeded(Problem, slug="budget-exceeded"):
    """The order costs more than the rest of a budget, or a gift costs more than the budget allows.

    `left_minor` is what is left of the budget, or None if a gift costs more than `per_gift_minor`.
    """

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


class NotFound(Problem, slug="not-found"):
    """There is nothing with that id or name, or it belongs to somebody else. The caller cannot tell which.

    Look-ups raise it, so that their callers need not check the result.
    """


def existing(value: _T | None, detail: str) -> _T:
    """Returns the value. Raises NotFound if it is None."""
    if value is None:
        raise NotFound(detail)
    return value


class HasEnded(NotFound):
    """What would be changed, such as a campaign, has ended."""


class ReferenceUsed(Problem, slug="reference-used"):
    """Another order has the external reference already. `holder` is the reference of that order."""

    def __init__(self, detail: str, *, holder: str) -> None:
        super().__init__(detail)
        self.holder = holder


class QuoteChanged(Problem, slug="quote-changed"):
    """The order or its price differs from the quote."""


class QuoteExpired(Problem, slug="quote-expired"):
    """The quote is no longer valid."""


class StateConflict(Problem, slug="state-conflict"):
    """The state does not allow the action: it was done before, or comes too early or too late."""


class TooManyRequests(Problem, slug="too-many-requests"):
    """The caller has reached a limit, and may try again in `retry_after_s` seconds."""

    def __init__(self, detail: str, *, retry_after_s: float) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class Unavailable(Problem, slug="unavailable"):
    """The request is valid, but the service cannot answer it now. Callers may try again in `retry_after_s` seconds.

    With `is_uncertain`, the request may have been carried out, or may still be.
    """

    def __init__(self, detail: str, *, retry_after_s: float = 1, is_uncertain: bool = False) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
        self.is_uncertain = is_uncertain
