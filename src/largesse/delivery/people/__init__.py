"""Mail to people who sign in: invitations, links for a new password, word of a new browser, of another second step and of an account that holds little (`low_balance`),
tests of what they are about to send.

`sending` takes what waits in `people_mails` and hands it to the mail server; `writing` says it, in plain text. Transactions hand it over by
`largesse.delivery.outbox`. It goes out where a mail server is set, of whichever environment; nothing of it is captured.
"""
