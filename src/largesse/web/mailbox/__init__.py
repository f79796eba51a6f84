"""The captured mailbox at `/mailbox`: what recipients would have got, for staging and the demo.

`pages` has its list and its letters; the mail itself is read by `largesse.delivery.mail.mailbox`.
"""

from largesse.web.mailbox.pages import mailbox_pages

__all__ = ["mailbox_pages"]
