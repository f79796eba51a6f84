"""`largesse verify`: does what is stored agree with itself? Each check says in a sentence what must hold.

`audit` runs all checks against one snapshot of the database. Most are SQL that finds what breaks a rule (`check`): those of the
`ledger`, of `orders`, of what became of lines (`claims`), of what foreign keys would hold (`references`), of the read models
(`reports`), and of roles (`rights`). `codes` opens every code, `chains` makes the marks of ledger and audit log again, `anchor` tells where they end; `progress` shows on a terminal how far it is. A
new rule is a `Check` in the file of its subject.
"""
