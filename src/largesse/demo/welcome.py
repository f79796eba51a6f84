"""What `largesse demo` prints."""

from __future__ import annotations

import json
import shlex
from typing import Any

from largesse.base.hosts import by_name


def welcome(public_url: str, secret: str, sign_in: str, *, product_id: int, account_id: int) -> str:
    """Where everything is, the API key, the link that lets in to the web application once, and two requests that answer 200 when pasted into a shell."""
    gift = {"productId": product_id, "value": 10, "accountId": account_id}
    recipients = [
        {"email": "ada@example.com", "name": "Ada"},
        {"email": "grace@example.com", "name": "Grace"},
    ]
    named = by_name(public_url)
    return f"""
Largesse is running with its demo world.

  API      {public_url}
  App      {named}/app
  Docs     {public_url}/docs
  Claim    {public_url}/claim
  Mail     {public_url}/mailbox
  API key  {secret}

Sign in to the web application, once by this link:

  {named}/app/link/{sign_in}

Send two people a gift of £10 each:

{_curl(public_url, secret, {**gift, "recipients": recipients, "message": "Thank you!"})}

Or have three codes to hand out yourself:

{_curl(public_url, secret, {**gift, "codeQuantity": 3})}

Ctrl-C ends it. The data and the key stay for the next start.
"""


def _curl(public_url: str, secret: str, body: dict[str, Any]) -> str:
    """A command that places the order `body`, as a person would type it."""
    parts = [
        f"curl {public_url}/send/gift",
        f"-H {shlex.quote(f'Authorization: Bearer {secret}')}",
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(json.dumps(body))}",
    ]
    return " \\\n  ".join(parts)
