"""The Python client of Largesse, the gift ordering service.

    from largesse_client import Largesse

    with Largesse("http://127.0.0.1:8000", api_key) as largesse:
        order = largesse.send.gift(1, value=10, code_quantity=3, account_id=1, external_reference="codes-1")

`Largesse` blocks, and `AsyncLargesse` is awaited. `webhooks.verify` checks deliveries, `errors` lists all errors, and `testing` starts a
Largesse for your own tests.
"""

from largesse_client import errors, models, webhooks
from largesse_client.asking import Ignored
from largesse_client.client import AsyncLargesse, Largesse
from largesse_client.errors import LargesseError, Problem
from largesse_client.models import ContactChange, Recipient
from largesse_client.version import __version__

__all__ = [
    "AsyncLargesse",
    "ContactChange",
    "Ignored",
    "Largesse",
    "LargesseError",
    "Problem",
    "Recipient",
    "__version__",
    "errors",
    "models",
    "webhooks",
]
