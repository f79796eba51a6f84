"""Whom a key acts for, who pays, who works there, and whether the service is well."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from largesse_client.models.opening import Shape, Word


class Environment(Word):
    """Which of the two worlds of an installation a key is for."""

    PRODUCTION = "production"
    STAGING = "staging"


class Identity(Shape, frozen=True, kw_only=True):
    """Whom the key acts for."""

    customer_id: int
    customer_name: str
    service_account_id: int
    service_account_name: str
    environment: Environment


class FundingAccount(Shape, frozen=True, kw_only=True):
    """An account the key can draw from; `balance` in `currency`."""

    id: int
    name: str
    is_master: bool
    currency_id: int
    currency: str
    balance: Decimal
    label: str


class Role(Word):
    """What a person may do in the web application."""

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
    """`warn`: it works, and `notes` say what will need an operator's hand."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"


class Health(Shape, frozen=True, kw_only=True):
    """Whether the service can work."""

    status: HealthStatus
    version: str | None = None
    notes: tuple[str, ...] = ()
