"""The captured mailbox at `/mailbox`: what recipients would have got, for staging and the demo."""

from largesse.web.mailbox.pages import mailbox_pages

__all__ = ["mailbox_pages"]
