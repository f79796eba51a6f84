"""Funding accounts and the ledger under them."""

from largesse.funding.accounts import FundingAccount, find_funding_account, list_funding_accounts
from largesse.funding.ledger import Posting, own_accounts, post, posting_arguments, posting_ctes, top_up

__all__ = [
    "FundingAccount",
    "Posting",
    "find_funding_account",
    "list_funding_accounts",
    "own_accounts",
    "post",
    "posting_arguments",
    "posting_ctes",
    "top_up",
]
