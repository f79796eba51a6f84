"""Quote tokens: signed, and not stored.

A token has the time it expires, the price, and a hash of the request's meaning, all signed with a key used only for this. The
signature also covers the customer and the environment. The hash leaves out the caller's reference, which only names an order. Each token has
random bytes, so that no two are equal.
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
from largesse.orders.options import DEFAULT_WRAPPING
from largesse.orders.order import Gift
from largesse.orders.request import OrderSpec

QUOTE_HOLDS = timedelta(minutes=15)
# The refusals of a send with a valid quote.
QUOTE_REFUSED = (QuoteChanged, QuoteExpired)

_TOKEN = struct.Struct(">QQ3s32s9s")  # expiry in seconds since 1970, price in minor units, currency, hash, random bytes
_encode = msgspec.json.Encoder().encode


def request_digest(gift: Gift, spec: OrderSpec) -> bytes:
    """Returns the hash of a request's meaning, without the caller's reference."""
    wrapping = None if spec.options.wrapping_key == DEFAULT_WRAPPING else spec.options.wrapping_key
    options = msgspec.structs.replace(spec.options, wrapping_key=wrapping)
    return hashlib.sha256(
        _encode((gift, msgspec.structs.replace(spec, external_reference=None, options=options)))
    ).digest()


class _Quoted(msgspec.Struct, frozen=True):
    """The content of a token."""

    expires_at_s: int
    total_minor: int
    currency: bytes
    request: bytes

    @classmethod
    def of(cls, gift: Gift, spec: OrderSpec, expires_at: datetime) -> _Quoted:
        return cls(
            int(expires_at.timestamp()),
            gift.unit_cost_minor * spec.code_count,
            gift.currency.encode("ascii"),
            request_digest(gift, spec),
        )

    @property
    def cost(self) -> str:
        currency = self.currency.decode("ascii")
        return f"{canonical(self.total_minor, currency)} {currency}"


def make_quote(
    vault: Vault, caller: Caller, gift: Gift, spec: OrderSpec, holds: timedelta = QUOTE_HOLDS
) -> tuple[str, datetime]:
    """Returns the token for an order of `gift` and `spec`, and the time until which it is valid, in whole seconds."""
    expires_at = (caller.now.astimezone(UTC) + holds).replace(microsecond=0)
    body = _TOKEN.pack(*msgspec.structs.astuple(_Quoted.of(gift, spec, expires_at)), os.urandom(9))
    token = body + vault.sign_quote(_signed(caller.principal, body))
    return urlsafe_b64encode(token).decode("ascii"), expires_at


def require_quoted(vault: Vault, caller: Caller, token: str, gift: Gift, spec: OrderSpec) -> None:
    """Raises an error unless the order may be placed under the quote `token`.

    Raises InvalidRequest for a token that this service has not given to this customer, QuoteExpired, and QuoteChanged if the order differs
    from the quoted one.
    """
    quoted = _read(vault, caller.principal, token)
    expires_at = datetime.fromtimestamp(quoted.expires_at_s, UTC)
    if expires_at <= caller.now:
        raise QuoteExpired(f"The quote held until {expires_at:%Y-%m-%dT%H:%M:%SZ}; nothing was placed.")
    now = _Quoted.of(gift, spec, expires_at)
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
    return refused("quote", "must be one that this service gave to this customer, unchanged")
