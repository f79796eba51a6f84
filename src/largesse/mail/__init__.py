"""Mail to recipients and to people: written, sent over SMTP, retried, captured in test mode, bounced and sent again."""
