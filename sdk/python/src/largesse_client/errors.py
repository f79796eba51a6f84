"""Every error the client raises.

    LargesseError
    ├── InvalidArgument             refused by the client, nothing was sent; also a ValueError
    ├── NoAnswer                    no answer, or half of one: it is not known whether the request was carried out
    │   └── Unreachable             no connection could be made: it was not carried out
    ├── UnreadableAnswer            the answer is not one of Largesse, or cannot be read
    ├── InvalidWebhook              a delivery that is not genuine
    │   ├── InvalidSignature        nobody with the secret signed it
    │   └── StaleWebhook            it was signed too long ago, or its signature has no time
    └── Problem                     Largesse refuses, with the reason (RFC 9457)
        ├── InvalidRequest          400
        ├── Unauthorized            401
        ├── PlanRequired            402
        ├── InsufficientBalance     402
        ├── BudgetExceeded          403
        ├── DailyLimit              403
        ├── InactiveServiceAccount  403
        ├── NetworkNotAllowed       403
        ├── OrderLimit              403
        ├── OtherServiceAccount     403
        ├── ScopeRequired           403
        ├── NotFound                404
        ├── MethodNotAllowed        405
        ├── SlowRequest             408
        ├── QuoteChanged            409
        ├── QuoteExpired            409
        ├── ReferenceUsed           409
        ├── StateConflict           409
        ├── TooLarge                413
        ├── UnsupportedBody         415
        ├── Misdirected             421
        ├── TooManyRequests         429
        ├── HeadersTooLarge         431
        ├── InternalError           500
        └── Unavailable             503

Each type of problem has a class with the name at the end of its address: `/problems/reference-used` is ReferenceUsed. A type that this
release does not know becomes a Problem. All errors can be pickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

_MOST_LISTED = 100  # as many as the service lists


class LargesseError(Exception):
    """The base class of all errors. `request_id` names the request in the service's log; None if none was sent."""

    request_id: str | None = None

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} (request id {self.request_id})" if self.request_id else text


class InvalidArgument(LargesseError, ValueError):
    """An invalid argument, which `argument` names. Nothing was sent.

    If there are several, `errors` has an error for each, and the text lists the first 100. `argument` is then the first.
    """

    argument: str = ""
    errors: tuple[InvalidArgument, ...] = ()

    @classmethod
    def of(cls, argument: str, text: str) -> InvalidArgument:
        """Returns the error of one argument. `text` follows the argument's name."""
        error = cls(f"`{argument}` {text}")
        error.argument = argument
        return error

    @classmethod
    def of_all(cls, errors: Sequence[InvalidArgument]) -> InvalidArgument:
        """Returns one error for all of these errors, of which there is at least one."""
        if len(errors) == 1:
            return errors[0]
        listed = [f"- {one}" for one in errors[:_MOST_LISTED]]
        more = [f"- and {len(errors) - _MOST_LISTED} more"] if len(errors) > _MOST_LISTED else []
        error = cls("\n".join([f"{len(errors)} arguments are wrong:", *listed, *more]))
        error.argument, error.errors = errors[0].argument, tuple(errors)
        return error


class NoAnswer(LargesseError):
    """No answer, or half of one: the request may have been carried out."""


class Unreachable(NoAnswer):
    """No connection could be made: the request was not carried out."""


class UnreadableAnswer(LargesseError):
    """An answer that is not one of Largesse. `status` is its HTTP status; `retry_after_s` says when to try again, if a proxy said so."""

    status: int = 0
    retry_after_s: float | None = None


class InvalidWebhook(LargesseError):
    """A delivery that is not genuine."""


class InvalidSignature(InvalidWebhook):
    """There is no signature, or it was not made with the secret for this body."""


class StaleWebhook(InvalidWebhook):
    """Signed with the secret, but too long ago, in the future, or without a time: somebody else may have sent a copy."""


class FieldError(msgspec.Struct, frozen=True):
    """A wrong member of the request: a JSON pointer into the body, and what is wrong."""

    pointer: str
    detail: str


PROBLEMS: dict[str, type[Problem]] = {}


class Problem(LargesseError):
    """An error of the service. `type` and `status` are for programs, `detail` is for people.

    `errors` lists wrong recipients; for a quote, it lists everything that is wrong. The text has them all if there are several.
    `retry_after_s` says when to try again, if the service said so.
    """

    slug: ClassVar[str] = ""

    status: int = 0
    type: str = "about:blank"
    title: str | None = None
    detail: str | None = None
    instance: str | None = None
    errors: tuple[FieldError, ...] = ()
    retry_after_s: float | None = None

    def __str__(self) -> str:
        listed = [f"- {one.pointer}: {one.detail}" for one in self.errors] if len(self.errors) > 1 else []
        return "\n".join([super().__str__(), *listed])

    def __init_subclass__(cls, *, slug: str) -> None:
        cls.slug = slug
        PROBLEMS[slug] = cls


class InvalidRequest(Problem, slug="invalid-request"):
    """A member of the request breaks a rule; `detail` names it and the limit."""


class Unauthorized(Problem, slug="unauthorized"):
    """The API key does not exist, or is of the other environment."""


class PlanRequired(Problem, slug="plan-required"):
    """The customer's plan does not include the API."""


class InsufficientBalance(Problem, slug="insufficient-balance"):
    """The funding account cannot cover the order. Nothing was placed."""


class InactiveServiceAccount(Problem, slug="inactive-service-account"):
    """The key's service account has been switched off."""


class OtherServiceAccount(Problem, slug="other-service-account"):
    """Another service account of the customer placed the order."""


class ScopeRequired(Problem, slug="scope-required"):
    """The key lacks the scope for this; `detail` names the scopes that it has."""


class NetworkNotAllowed(Problem, slug="network-not-allowed"):
    """The key may not be used from this network address."""


class OrderLimit(Problem, slug="order-limit"):
    """The order costs more than the service account may order at once. Nothing was placed."""


class DailyLimit(Problem, slug="daily-limit"):
    """With this order, the service account would order more than it may today. Nothing was placed."""


class BudgetExceeded(Problem, slug="budget-exceeded"):
    """The order exceeds a budget of the customer, which `detail` names, with the amount that is left. Nothing was placed."""


class NotFound(Problem, slug="not-found"):
    """There is nothing with that id that the key may see."""


class MethodNotAllowed(Problem, slug="method-not-allowed"):
    """The address does not have that method."""


class SlowRequest(Problem, slug="slow-request"):
    """The request took too long to arrive."""


class QuoteChanged(Problem, slug="quote-changed"):
    """The request or its price is no longer what the `quote` was given for. Nothing was placed."""


class QuoteExpired(Problem, slug="quote-expired"):
    """The `quote` is too old. Nothing was placed."""


class StateConflict(Problem, slug="state-conflict"):
    """It is not possible in the current state, such as a webhook secret that is being rotated already. `detail` says why; nothing was changed."""


class ReferenceUsed(Problem, slug="reference-used"):
    """The `external_reference` belongs to another order.

    `order_reference` names that order. `differences` names the arguments that differ, and `service_account` if another service account placed
    the order. It is empty if the differences are unknown.
    """

    order_reference: str | None = None
    differences: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = super().__str__()
        if not self.differences:
            return text
        return f"{text} Order {self.order_reference} differs in {', '.join(self.differences)}: nothing was placed."


class TooLarge(Problem, slug="too-large"):
    """The body is too large."""


class UnsupportedBody(Problem, slug="unsupported-body"):
    """The body is not JSON."""


class Misdirected(Problem, slug="misdirected"):
    """The service does not answer to that host name."""


class TooManyRequests(Problem, slug="too-many-requests"):
    """There were too many requests; `retry_after_s` says when to continue."""


class HeadersTooLarge(Problem, slug="headers-too-large"):
    """The headers are too large."""


class InternalError(Problem, slug="internal-error"):
    """The service failed; its log has the error with `request_id`."""


class Unavailable(Problem, slug="unavailable"):
    """The service cannot answer now; `retry_after_s` says when to try again."""
