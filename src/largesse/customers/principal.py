"""The principal of a request: the customer, and the service account or person that acts for it."""

from collections.abc import Sequence

import msgspec

from largesse.base.settings import Network
from largesse.db.scope import Place, Scope, for_customer

ADMIN = "admin"
# The roles of people who may send.
SENDERS = (ADMIN, "member")


class Principal(msgspec.Struct, frozen=True):
    """The customer and service account of an API key, or the customer and the person. It is read again for each request.

    For a person, the fields about API keys are None, and there is no service account.
    """

    key_id: int | None
    environment: str  # production or staging
    customer_id: int
    customer_name: str
    plan: str  # starter, pro or enterprise
    funding: str  # balance or invoiced
    service_account_id: int | None
    service_account_name: str
    service_account_active: bool
    user_id: int | None = None
    role: str | None = None  # the role of the person
    scopes: Sequence[str] | None = None  # the scopes of the key; None: all
    networks: Sequence[Network] | None = None  # the networks that may use the key; None: all
    limits: str | None = None  # the limits of the service account, for `read_limits`
    session_id: int | None = None  # the session of the person's browser
    automation_id: int | None = None  # the automation that sends as the person

    @property
    def draws_on_all(self) -> bool:
        """Whether it may use every funding account of the customer, also those assigned to others."""
        return self.role == ADMIN

    @property
    def person_key(self) -> int | None:
        """The key of a person's status: the session's id, or without a session the negative user id. None for an API key."""
        if self.session_id is not None or self.user_id is None:
            return self.session_id
        return -self.user_id

    @property
    def place(self) -> Place:
        """The customer and the environment."""
        return self.customer_id, self.environment

    @property
    def scope(self) -> Scope:
        """The scope of its transactions."""
        return for_customer(self.customer_id, self.environment)


def person_principal(
    environment: str,
    customer_id: int,
    customer_name: str,
    plan: str,
    funding: str,
    user_id: int | None,
    role: str,
    session_id: int | None = None,
) -> Principal:
    """Returns the principal of a person, who has no API key and no service account."""
    of_customer = (environment, customer_id, customer_name, plan, funding)
    return Principal(None, *of_customer, None, "", True, user_id, role, session_id=session_id)


def staff_principal(customer_id: int, environment: str) -> Principal:
    """Returns the principal of a member of staff or a command that acts for a customer: an administrator who is no member."""
    return person_principal(environment, customer_id, "", "", "", None, ADMIN)
