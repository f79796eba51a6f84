"""Quotes as callers hold them: a signed token of what was asked for and what it would have cost.

Nothing of a quote is kept: the token has the instant it expires, the price, and a hash of the request as it was understood, all
under the signature of a key made for this alone. The customer and the environment are signed too, without being in it. The
caller's reference is not: it names an order, whatever is in that. No two quotes are alike, so that one can be derived from each.
"""

from __future__ import annotations

import hashlib
import os
import struct
from base64 import b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta

import msgspec

from largesse.base.decoding import refused
from largesse.base.errors import InvalidRequest, QuoteChanged, QuoteExpired
from largesse.base.money import canonical
from largesse.customers.authenticator import Caller
from largesse.customers.principal import Principal
from largesse.encryption.vault import SIGNATURE_BYTES, Vault
from largesse.orders.order import Gift
from largesse.orders.request import OrderSpec

QUOTE_HOLDS = timedelta(minutes=15)
# What a send with a quote of this service's may be refused for.
QUOTE_REFUSED = (QuoteChanged, QuoteExpired)

_TOKEN = struct.Struct(">QQ3s32s9s")  # seconds since 1970, minor units, currency, hash, and what makes it the only one
_encode = msgspec.json.Encoder().encode


class _Quoted(msgspec.Struct, frozen=True):
    """What a token says."""

    expires_at_s: int
    total_minor: int
    currency: bytes
    request: bytes

    @classmethod
    def of(cls, gift: Gift, wanted: OrderSpec, expires_at: datetime) -> _Quoted:
        request = (gift, msgspec.structs.replace(wanted, external_reference=None))
        return cls(
            int(expires_at.timestamp()),
            gift.unit_cost_minor * wanted.code_count,
            gift.currency.encode("ascii"),
            hashlib.sha256(_encode(request)).digest(),
        )

    @property
    def cost(self) -> str:
        currency = self.currency.decode("ascii")
        return f"{canonical(self.total_minor, currency)} {currency}"


def make_quote(vault: Vault, caller: Caller, gift: Gift, wanted: OrderSpec) -> tuple[str, datetime]:
    """The token for an order of `gift` and `wanted`, and the instant until which it holds, in whole seconds."""
    expires_at = (caller.now.astimezone(UTC) + QUOTE_HOLDS).replace(microsecond=0)
    body = _TOKEN.pack(*msgspec.structs.astuple(_Quoted.of(gift, wanted, expires_at)), os.urandom(9))
    token = body + vault.sign_quote(_signed(caller.principal, body))
    return urlsafe_b64encode(token).decode("ascii"), expires_at


def require_quoted(vault: Vault, caller: Caller, token: str, gift: Gift, wanted: OrderSpec) -> None:
    """Raises what keeps an order from being placed under the quote `token`.

    InvalidRequest for one that this service has not given to this customer, QuoteExpired, or QuoteChanged when the order is
    not the one that was quoted.
    """
    quoted = _read(vault, caller.principal, token)
    expires_at = datetime.fromtimestamp(quoted.expires_at_s, UTC)
    if expires_at <= caller.now:
        raise QuoteExpired(f"The quote held until {expires_at:%Y-%m-%dT%H:%M:%SZ}; nothing was placed.")
    now = _Quoted.of(gift, wanted, expires_at)
    if now == quoted:
        return
    if now.cost != quoted.cost:
        raise QuoteChanged(f"The order was quoted at {quoted.cost} and would cost {now.cost}; nothing was placed.")
    raise QuoteChanged("The request is not the one that was quoted; nothing was placed.")


def _read(vault: Vault, principal: Principal, token: str) -> _Quoted:
    try:
        signed = b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except ValueError:
        raise _not_ours() from None
    body, signature = signed[:-SIGNATURE_BYTES], signed[-SIGNATURE_BYTES:]
    if len(body) != _TOKEN.size or not vault.has_signed_quote(_signed(principal, body), signature):
        raise _not_ours()
    *quoted, _ = _TOKEN.unpack(body)
    return _Quoted(*quoted)


def _signed(principal: Principal, body: bytes) -> bytes:
    return f"{principal.environment}/{principal.customer_id}/".encode() + body


def _not_ours() -> InvalidRequest:
    return refused("quote", "is none that this service has given to this customer")
