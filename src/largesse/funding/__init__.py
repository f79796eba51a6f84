"""Funding accounts and the ledger under them: top-ups, statements, and what invoiced customers owe.

`accounts` says which accounts a service account may draw from, `sources` what else an order may be paid from, and what follows.
`assigning` is who may use which. `saving` writes the accounts of a world file. `ledger` is the journal, and the only place that writes entries, each with the mark that `chaining` says what it is made of:
rooms that move money in a larger statement take its SQL from there. `statements` reads an account's entries between two
balances; `managing` are the accounts that customers make themselves, `transfers` moves money between two, `watching` is who is told when one holds little, `proving` makes its marks again for its people; `history` is what they held lately; `overview` is what a customer's people see of their accounts; `receivables` is what invoiced customers owe, and their payments; `owed` shows them that by month. `top_ups` are those that customers ask for, each with one of the
`transfer_references`; `bank_file` reads what a bank tells of transfers, and `payments` matches them with the top-ups they pay for. Why so: docs/decisions/0005-ledger.md.
"""

from largesse.funding.accounts import (
    AccountRecord,
    FundingAccount,
    find_funding_account,
    list_accounts,
    list_funding_accounts,
    list_unfunded,
)
from largesse.funding.assigning import (
    Assignable,
    Assigned,
    Holder,
    assign_accounts,
    list_assignable,
    take_all_accounts,
)
from largesse.funding.ledger import (
    NEXT_ENTRY_ID,
    Credit,
    Entry,
    Locked,
    Posting,
    find_own_accounts,
    lock_accounts,
    mark_entries,
    new_balances,
    new_entries,
    own_accounts,
    post,
    post_at_home,
    top_up,
)
from largesse.funding.receivables import Receivable, list_receivables, settle
from largesse.funding.saving import assign, save_accounts
from largesse.funding.sources import (
    SOURCES,
    FromAccount,
    OnInvoice,
    PaymentSource,
    is_fitting,
    is_payer,
    names_account,
    payment_source,
    unfitting,
)
from largesse.funding.statements import (
    Statement,
    StatementEntry,
    month_of,
    order_entries,
    read_statement,
    statement_entries,
    statement_page,
)

__all__ = [
    "NEXT_ENTRY_ID",
    "SOURCES",
    "AccountRecord",
    "Assignable",
    "Assigned",
    "Credit",
    "Entry",
    "FromAccount",
    "FundingAccount",
    "Holder",
    "Locked",
    "OnInvoice",
    "PaymentSource",
    "Posting",
    "Receivable",
    "Statement",
    "StatementEntry",
    "assign",
    "assign_accounts",
    "find_funding_account",
    "find_own_accounts",
    "is_fitting",
    "is_payer",
    "list_accounts",
    "list_assignable",
    "list_funding_accounts",
    "list_receivables",
    "list_unfunded",
    "lock_accounts",
    "mark_entries",
    "month_of",
    "names_account",
    "new_balances",
    "new_entries",
    "order_entries",
    "own_accounts",
    "payment_source",
    "post",
    "post_at_home",
    "read_statement",
    "save_accounts",
    "settle",
    "statement_entries",
    "statement_page",
    "take_all_accounts",
    "top_up",
    "unfitting",
]
