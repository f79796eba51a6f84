"""The captured mailbox at `/mailbox`: what recipients would have got, for staging and the demo.

`pages` has its list and its letters; the mail itself is read by `largesse.delivery.mail.mailbox`.
"""
