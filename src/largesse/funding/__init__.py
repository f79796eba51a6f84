"""Funding accounts and the ledger under them: top-ups, statements, and what invoiced customers owe.

`accounts` says which accounts a service account may draw from, `sources` what else an order may be paid from, and what follows.
`assigning` is who may use which. `saving` writes the accounts of a world file. `ledger` is the journal, and the only place that writes entries, each with the mark that `chaining` says what it is made of:
rooms that move money in a larger statement take its SQL from there. `statements` reads an account's entries between two
balances; `managing` are the accounts that customers make themselves, `transfers` moves money between two, `watching` is who is told when one holds little, `proving` makes its marks again for its people; `history` is what they held lately; `overview` is what a customer's people see of their accounts; `receivables` is what invoiced customers owe, and their payments; `owed` shows them that by month. `top_ups` are those that customers ask for, each with one of the
`transfer_references`; `bank_file` reads what a bank tells of transfers, and `payments` matches them with the top-ups they pay for. Why so: docs/decisions/0005-ledger.md.
"""
