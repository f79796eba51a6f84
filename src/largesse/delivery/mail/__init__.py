"""Mail to recipients: the letters, the messages that carry them, and the captured mailbox."""

from largesse.delivery.mail.mailbox import CapturedMail, OpenedMail, list_captured, open_captured
from largesse.delivery.mail.records import RecipientDelivery, list_order_deliveries
from largesse.delivery.mail.resending import Resend, resend

__all__ = [
    "CapturedMail",
    "OpenedMail",
    "RecipientDelivery",
    "Resend",
    "list_captured",
    "list_order_deliveries",
    "open_captured",
    "resend",
]
