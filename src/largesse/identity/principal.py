"""Whom a request acts for."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.database import Scope, for_customer


@dataclass(frozen=True, slots=True)
class Principal:
    """The customer and service account an API key belongs to, read afresh for each request."""

    key_id: int
    environment: str  # production or staging
    customer_id: int
    customer_name: str
    plan: str  # starter, pro or enterprise
    funding: str  # balance or invoiced
    service_account_id: int
    service_account_name: str
    service_account_active: bool

    @property
    def scope(self) -> Scope:
        """For whom its transactions act."""
        return for_customer(self.customer_id, self.environment)
