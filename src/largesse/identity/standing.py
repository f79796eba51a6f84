"""What a key may do at all, whatever it asks for: what its customer's plan and its service account allow."""

from __future__ import annotations

from largesse.errors import Inactive, PlanRequired
from largesse.identity.principal import Principal


def require_plan(principal: Principal) -> None:
    """Raises PlanRequired when the customer's plan does not include the API."""
    if principal.plan == "starter":
        raise PlanRequired("The API is available on the Pro plan and above; this customer is on Starter.")


def require_active(principal: Principal) -> None:
    """Raises Inactive when the key's service account has been switched off."""
    if not principal.service_account_active:
        raise Inactive(f"The service account {principal.service_account_name!r} is not active.")
