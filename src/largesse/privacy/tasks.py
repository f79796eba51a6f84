"""Registers the addresses of open requests for key rotation."""

from largesse.encryption.columns import sealed_column
from largesse.privacy.requests import request_context

REQUESTS = sealed_column(
    "privacy_requests",
    "sealed_email",
    {"id": "int"},
    lambda vault: vault.emails,
    lambda row: request_context(row["id"]),
)
