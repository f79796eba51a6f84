"""Identities of keys, funding accounts, people, and the health of the service."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from largesse_client.models.opening import Shape, Word


class Environment(Word):
    """The environment that a key is for."""

    PRODUCTION = "production"
    STAGING = "staging"


class Identity(Shape, frozen=True, kw_only=True):
    """The customer and the service account that the key acts for."""

    customer_id: int
    customer_name: str
    service_account_id: int
    service_account_name: str
    environment: Environment


class FundingAccount(Shape, frozen=True, kw_only=True):
    """A funding account that the key can use. `balance` is in `currency`."""

    id: int
    name: str
    is_master: bool
    currency_id: int
    currency: str
    balance: Decimal
    label: str


class AccountEntry(Shape, frozen=True, kw_only=True):
    """One change of a funding account, by `amount`, with the `balance` after it."""

    id: int
    creation_date: datetime
    kind: str
    amount: Decimal
    balance: Decimal
    order_reference: str | None
    external_reference: str | None


class Role(Word):
    """The role of a person, which decides what they may do in the web application."""

    ADMIN = "admin"
    MEMBER = "member"
    FINANCE = "finance"
    VIEWER = "viewer"


class User(Shape, frozen=True, kw_only=True):
    """A person on the customer's account."""

    id: int
    name: str
    email: str
    role: Role
    is_active: bool
    creation_date: datetime
    last_login_date: datetime | None
    label: str


class HealthStatus(Word):
    """The status of the service. With `warn` it works, but an operator must act soon: `notes` say why."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"


class Health(Shape, frozen=True, kw_only=True):
    """The health of the service."""

    status: HealthStatus
    version: str | None = None
    notes: tuple[str, ...] = ()
