"""What privacy registers: addresses of open requests are encrypted again under the newest master key."""

from largesse.encryption.columns import sealed_column
from largesse.privacy.requests import request_context

REQUESTS = sealed_column(
    "privacy_requests",
    "sealed_email",
    {"id": "int"},
    lambda vault: vault.emails,
    lambda row: request_context(row["id"]),
)
