"""Every error Largesse raises on purpose.

    StartError              an operator's mistake: one line, then a non-zero exit
    Problem                 an answer to a caller (RFC 9457), carrying its status, type and title
    ├── InvalidRequest      400
    ├── Unauthorized        401
    ├── PlanRequired        402
    ├── InsufficientBalance 402
    ├── Inactive            403
    ├── OtherServiceAccount 403
    ├── NotFound            404
    ├── MethodNotAllowed    405
    ├── SlowRequest         408
    ├── ReferenceUsed       409
    ├── TooLarge            413
    ├── UnsupportedBody     415
    ├── Misdirected         421
    ├── TooManyRequests     429
    ├── HeadersTooLarge     431
    ├── InternalError       500
    └── Unavailable         503

Routes and rooms raise; `largesse.web.api.replying` alone renders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta


class StartError(Exception):
    """What an operator must put right before a command can run; its text is one line."""


class FieldError(msgspec.Struct, frozen=True):
    """One of the members that are wrong."""

    pointer: Annotated[
        str,
        Meta(
            description="Which member, as a JSON pointer into the body",
            examples=["#/recipients/1/email"],
        ),
    ]
    detail: Annotated[
        str,
        Meta(
            description="What is wrong with it",
            examples=["`recipients[1].quantity` must be at most 1000."],
        ),
    ]


class Problem(Exception):
    """An error answer to a caller: RFC 9457 problem details.

    `slug` ends its `type` address (`/problems/{slug}`), which explains the problem when opened. `errors` names members that
    are wrong, where it can be told for each.
    """

    status: ClassVar[int]
    slug: ClassVar[str]
    title: ClassVar[str]
    explanation: ClassVar[str]

    def __init__(
        self,
        detail: str,
        *,
        instance: str | None = None,
        headers: dict[str, str] | None = None,
        errors: Sequence[FieldError] = (),
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.instance = instance
        self.headers = headers or {}
        self.errors = tuple(errors)


class InvalidRequest(Problem):
    status = 400
    slug = "invalid-request"
    title = "The request is not valid"
    explanation = "A member of the body or a parameter breaks a rule; the detail names it and the limit."


class Unauthorized(Problem):
    status = 401
    slug = "unauthorized"
    title = "No valid API key"
    explanation = (
        "Send an API key as `Authorization: Bearer …` or `X-Api-Key: …`. "
        "A key holds for one environment only, and a deleted key holds for none."
    )

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": 'Bearer realm="Largesse"'})


class PlanRequired(Problem):
    status = 402
    slug = "plan-required"
    title = "The plan does not include API access"
    explanation = "The API is available on the Pro plan and above."


class InsufficientBalance(Problem):
    status = 402
    slug = "insufficient-balance"
    title = "The funding account cannot cover the order"
    explanation = "Nothing was placed and no codes were issued. Top the account up or send less."


class Inactive(Problem):
    status = 403
    slug = "inactive-service-account"
    title = "The service account is not active"
    explanation = "The key is valid, but the service account it acts as has been switched off."


class OtherServiceAccount(Problem):
    status = 403
    slug = "other-service-account"
    title = "Another service account placed the order"
    explanation = "Codes are read again, and an order is cancelled or mailed again, with a key of the service account that placed it."


class NotFound(Problem):
    status = 404
    slug = "not-found"
    title = "Not found"
    explanation = "Nothing here is available to this key under that address."


class MethodNotAllowed(Problem):
    status = 405
    slug = "method-not-allowed"
    title = "Method not allowed"
    explanation = "The address exists, but not with this method; `Allow` lists those it has."


class SlowRequest(Problem):
    status = 408
    slug = "slow-request"
    title = "The request took too long to arrive"
    explanation = (
        "The head of a request must arrive whole within 10 seconds, its body within 30 and without a pause of 10. "
        "The connection is closed."
    )

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"Connection": "close"})


class ReferenceUsed(Problem):
    status = 409
    slug = "reference-used"
    title = "The external reference is already used"
    explanation = "An order of this customer holds that `externalReference`; `instance` is its address. Nothing was placed again."


class TooLarge(Problem):
    status = 413
    slug = "too-large"
    title = "The request body is too large"
    explanation = "A request body holds at most 4 MiB."


class UnsupportedBody(Problem):
    status = 415
    slug = "unsupported-body"
    title = "The request body must be JSON"
    explanation = "Send `Content-Type: application/json`, UTF-8, without a content encoding."


class Misdirected(Problem):
    status = 421
    slug = "misdirected"
    title = "This service does not answer to that host name"
    explanation = (
        "The captured mailbox is for the user of the machine it runs on. It answers to that machine's names alone, so that "
        "no web page elsewhere can read it under a name of its own."
    )


class TooManyRequests(Problem):
    status = 429
    slug = "too-many-requests"
    title = "Too many requests"
    explanation = "Wait for the seconds in `Retry-After` and try again."

    def __init__(self, detail: str, *, retry_after_s: float) -> None:
        super().__init__(detail, headers={"Retry-After": str(max(1, math.ceil(retry_after_s)))})


class HeadersTooLarge(Problem):
    status = 431
    slug = "headers-too-large"
    title = "The request headers are too large"
    explanation = "The headers of a request hold at most 32 KiB together."


class InternalError(Problem):
    status = 500
    slug = "internal-error"
    title = "Something went wrong on our side"
    explanation = "The failure was logged under the request id in `X-Request-Id`."


class Unavailable(Problem):
    status = 503
    slug = "unavailable"
    title = "The service cannot answer just now"
    explanation = "Try again after the seconds in `Retry-After`. With an `externalReference` a repeated order is never placed twice."

    def __init__(self, detail: str, *, retry_after_s: int = 1) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})


PROBLEMS: tuple[type[Problem], ...] = tuple(
    sorted(Problem.__subclasses__(), key=lambda p: (p.status, p.slug))
)
