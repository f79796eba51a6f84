"""Funding accounts and people."""

from __future__ import annotations

from largesse_client import arguments
from largesse_client.binding import M, Resource, listing
from largesse_client.calls import Pages, newest_first, whole
from largesse_client.models import FundingAccount, User


class FundingAccounts(Resource[M]):
    """The accounts that orders are paid from."""

    @listing
    def list(self) -> Pages[FundingAccount]:
        """Returns the accounts that the key can use, in all currencies; none if orders are invoiced."""
        return whole("/funding-accounts", FundingAccount)


class Users(Resource[M]):
    """The people on the customer's account."""

    @listing
    def list(self, *, page_size: int = 100) -> Pages[User]:
        """Returns all people, newest first."""
        return newest_first("/users", User, arguments.number("page_size", page_size, most=arguments.MAX_PAGE))
