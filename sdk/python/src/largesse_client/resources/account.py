"""Funding accounts and people."""

from __future__ import annotations

from collections.abc import Sequence

from largesse_client import arguments
from largesse_client.binding import M, Resource, listing
from largesse_client.calls import Pages, Query, newest_first, pages, whole
from largesse_client.models import AccountEntry, FundingAccount, User

_INT64 = 2**63 - 1


class FundingAccounts(Resource[M]):
    """The accounts that orders are paid from."""

    @listing
    def list(self) -> Pages[FundingAccount]:
        """Returns the accounts that the key can use, in all currencies; none if orders are invoiced."""
        return whole("/funding-accounts", FundingAccount)

    @listing
    def entries(
        self, account_id: int, *, month: str | None = None, after: int = 0, page_size: int = arguments.MAX_PAGE
    ) -> Pages[AccountEntry]:
        """Returns every change of an account after the entry with that `id`, oldest first; with `month`, such as `2030-01`, those of its statement."""

        def then(query: Query, page: Sequence[AccountEntry]) -> Query:
            return {**query, "after": page[-1].id}

        start = {"after": arguments.number("after", after, least=0, most=_INT64)}
        query: Query = start if month is None else {**start, "month": arguments.text("month", month, 7)}
        size = arguments.number("page_size", page_size, most=arguments.MAX_PAGE)
        path = f"/funding-accounts/{arguments.number('account_id', account_id)}/entries"
        return pages(path, AccountEntry, query, size, then)


class Users(Resource[M]):
    """The people on the customer's account."""

    @listing
    def list(self, *, page_size: int = 100) -> Pages[User]:
        """Returns all people, newest first."""
        return newest_first("/users", User, arguments.number("page_size", page_size, most=arguments.MAX_PAGE))
