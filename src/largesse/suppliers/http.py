"""The supplier kind `http`: a file describes its addresses, the templates of requests, the paths in answers, and the signature."""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec

from largesse.base import clock
from largesse.base.money import AmountError, canonical, exponent, to_minor
from largesse.suppliers import model

_Word = Literal["delivered", "pending", "refused", "unknown", "cancelled", "not_cancellable"]
_MOST_OFFERS = 10_000
_MOST_AMOUNT = 10**18  # larger ones are refused: to convert "1E+999999" to an integer takes half a minute
# Errors of calls that failed before anything was sent.
_NOT_SENT = frozenset({"forbidden_target", "forbidden_address", "dns", "connect"})
_NO_DAY = "0000-00-00"  # how some databases write that there is no date
_PLACE = re.compile(r"\{([a-z_.]+)\}")
_PLACES = frozenset({"id", "sku", "value", "value_minor", "currency", "country", "recipient_email"})
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")


class Call(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A request: its path below `url`, and its body, which is sent as JSON."""

    path: str
    method: Literal["GET", "POST", "PUT", "DELETE"] = "GET"
    body: dict[str, Any] | None = None


class Signing(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A header with the HMAC-SHA256 of `over`, in hexadecimal. `timestamp_header` gets the seconds since 1970."""

    header: str
    secret: str
    over: str = "{timestamp}.{body}"
    timestamp_header: str | None = None
    prefix: str = ""


class AnswerPaths(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The paths of values in an answer: names separated by dots, and numbers for items of a list."""

    id: str
    status: str
    number: str
    pin: str | None = None
    use_by: str | None = None
    value: str | None = None  # the path of the voucher's value; add `currency` if it may differ from the order's
    currency: str | None = None
    cost: str | None = None
    cost_currency: str | None = None


class CataloguePaths(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The request for the catalogue, the path of the list in its answer, and the paths in each item."""

    path: str
    items: str
    sku: str
    name: str
    currency: str
    countries: str
    amounts: str


class BalancePaths(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The request for the balance, and the paths in its answer."""

    path: str
    amount: str
    currency: str


class HttpOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The options of a supplier of the kind `http`."""

    url: str
    order: Call
    poll: Call
    answer: AnswerPaths
    statuses: dict[str, _Word]
    cancel: Call | None = None
    http_statuses: dict[Annotated[int, msgspec.Meta(ge=200, le=499)], _Word] = {}
    headers: dict[str, str] = {}
    sign: Signing | None = None
    products: dict[str, str] = {}
    amounts: Literal["minor", "major"] = "major"
    catalogue: CataloguePaths | None = None
    balance: BalancePaths | None = None


class HttpSupplier:
    """Calls a supplier by its description."""

    def __init__(self, setup: model.Setup) -> None:
        self._options = msgspec.convert(setup.options, HttpOptions)
        self._secrets = setup.secrets
        self._transport = setup.transport
        _check(self._options, self._secrets)
        self.needs_recipient = "recipient_email" in _places(self._options.order)

    async def order(self, line: model.SupplierLine) -> model.Answer:
        """Implements Supplier."""
        if self._options.products and line.product not in self._options.products:
            return model.Refused()
        return await self._ask(self._options.order, line)

    async def poll(self, line: model.SupplierLine) -> model.Answer:
        """Implements Supplier."""
        return await self._ask(self._options.poll, line)

    async def cancel(self, line: model.SupplierLine) -> model.Answer:
        """Implements Supplier."""
        return model.NotCancellable() if self._options.cancel is None else await self._ask(self._options.cancel, line)

    async def catalogue(self) -> list[model.Offer]:
        """Implements Supplier."""
        paths = self._options.catalogue
        if paths is None:
            return []
        _, content = await self._request(Call(paths.path), {})
        items = _at(content, paths.items)
        if not isinstance(items, list) or len(items) > _MOST_OFFERS:
            raise model.SupplierFailed("bad_answer")
        return [_offer(item, paths, self._major) for item in items]

    async def balance(self) -> model.Balance | None:
        """Implements Supplier."""
        paths = self._options.balance
        if paths is None:
            return None
        _, content = await self._request(Call(paths.path), {})
        currency = _currency(content, paths.currency)
        amount_minor = self._minor(_at(content, paths.amount), currency)
        if currency is None or amount_minor is None:
            raise model.SupplierFailed("bad_answer")
        return model.Balance(amount_minor, currency)

    async def _ask(self, call: Call, line: model.SupplierLine) -> model.Answer:
        values = {
            "id": line.id,
            "sku": self._options.products.get(line.product, line.product),
            "value": canonical(line.value_minor, line.currency),
            "value_minor": str(line.value_minor),
            "currency": line.currency,
            "country": line.country,
            "recipient_email": line.recipient_email or "",
        }
        status, content = await self._request(call, values)
        word = self._options.http_statuses.get(status)
        if word is None:
            if not 200 <= status < 300:
                raise model.SupplierFailed(f"status_{status}")
            word = self._options.statuses.get(_text(content, self._options.answer.status) or "")
            if word != "delivered" and _text(content, self._options.answer.id) not in {None, line.id}:
                # Not checked if delivered: then the check of the voucher refuses it.
                raise model.SupplierFailed("foreign_answer")
        if word is None:
            raise model.SupplierFailed("unknown_status")
        return self._bought(content, line) if word == "delivered" else _ANSWERS[word]

    def _bought(self, content: object, line: model.SupplierLine) -> model.Bought:
        paths = self._options.answer
        worth = line.currency if paths.currency is None else _currency(content, paths.currency)
        if worth != line.currency or (
            paths.value is not None and self._minor(_at(content, paths.value), worth) != line.value_minor
        ):
            raise model.SupplierFailed(model.OTHER_VALUE)
        currency = None if paths.cost_currency is None else _currency(content, paths.cost_currency)
        cost = None if paths.cost is None else _at(content, paths.cost)
        try:
            use_by = _text_or_nothing(content, paths.use_by)
            return model.Bought(
                id=_text(content, paths.id) or "",
                number=_text(content, paths.number) or "",
                pin=_text_or_nothing(content, paths.pin),
                use_by=date.fromisoformat(use_by[:10]) if use_by and not use_by.startswith(_NO_DAY) else None,
                cost_minor=self._minor(cost, currency),
                cost_currency=currency if cost is not None else None,
            )
        except ValueError:
            raise model.SupplierFailed("malformed_voucher") from None

    def _major(self, amount: object, currency: str) -> str:
        """Returns an amount of the catalogue in major units. Raises SupplierFailed if it is not an amount."""
        if self._options.amounts == "major":
            return str(amount)
        minor = self._minor(amount, currency)
        if minor is None:
            raise model.SupplierFailed("bad_answer")
        return canonical(minor, currency)

    def _minor(self, amount: object, currency: str | None) -> int | None:
        """Returns an amount of an answer in whole minor units; None if there is none. Raises SupplierFailed if it is not an amount."""
        if amount is None:
            return None
        try:
            exact = Decimal(str(amount))
            if currency is None or isinstance(amount, bool) or not exact.is_finite() or not 0 <= exact <= _MOST_AMOUNT:
                raise model.SupplierFailed("malformed_voucher")
            places = exponent(currency)
            if self._options.amounts == "minor":
                exact = exact.scaleb(-places)
            return to_minor(exact.quantize(Decimal(1).scaleb(-places)), currency)
        except (InvalidOperation, AmountError, KeyError):
            raise model.SupplierFailed("malformed_voucher") from None

    async def _request(self, call: Call, values: Mapping[str, str]) -> tuple[int, object]:
        """Sends a request, and returns the status and the JSON of the answer. The JSON may be None if `http_statuses` lists the status."""
        path = _PLACE.sub(lambda place: quote(values[place[1]], safe=""), call.path)
        body = b"" if call.body is None else msgspec.json.encode(_filled(call.body, values))
        headers = {"Accept": "application/json", **{n: self._with_secrets(v) for n, v in self._options.headers.items()}}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if self._options.sign is not None:
            headers |= self._signature(self._options.sign, call.method, path, body)
        result = await self._transport.request(call.method, self._options.url + path, body, headers, 0)
        if result.status is None:
            error = result.error or "failed"
            raise model.SupplierFailed(error, arrived=error not in _NOT_SENT)
        try:
            return result.status, msgspec.json.decode(result.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if 200 <= result.status < 300 and result.status not in self._options.http_statuses:
                raise model.SupplierFailed("bad_answer") from None
            return result.status, None

    def _with_secrets(self, template: str) -> str:
        return _PLACE.sub(lambda place: self._secrets[place[1].removeprefix("secrets.")], template)

    def _signature(self, sign: Signing, method: str, path: str, body: bytes) -> dict[str, str]:
        now = str(int(clock.now().timestamp()))
        known = {"timestamp": now.encode(), "method": method.encode(), "path": path.encode(), "body": body}
        parts = re.split(r"\{(timestamp|method|path|body)\}", sign.over)
        text = b"".join(known[part] if at % 2 else part.encode() for at, part in enumerate(parts))
        digest = hmac.new(self._secrets[sign.secret].encode(), text, hashlib.sha256).hexdigest()
        signed = {sign.header: sign.prefix + digest}
        return signed if sign.timestamp_header is None else signed | {sign.timestamp_header: now}


_ANSWERS: Mapping[str, model.Answer] = {
    "pending": model.Pending(),
    "refused": model.Refused(),
    "unknown": model.Unknown(),
    "cancelled": model.Cancelled(),
    "not_cancellable": model.NotCancellable(),
}


def _check(options: HttpOptions, secrets: Mapping[str, str]) -> None:
    """Checks what the types of the options cannot. Raises ValueError with the name of the wrong field."""
    for name, places in (
        ("order", _PLACES),
        ("poll", _PLACES),
        ("cancel", _PLACES),
        ("catalogue", set()),
        ("balance", set()),
    ):
        call: Call | CataloguePaths | BalancePaths | None = getattr(options, name)
        if call is not None and (unknown := _places(call) - places):
            raise ValueError(f"{name} has the unknown placeholder {{{min(unknown)}}}")
    if not options.url.startswith(("https://", "http://")) or options.url.endswith("/"):
        raise ValueError("url must be an address such as https://api.example.com/v1, without a slash at its end")
    for header, template in options.headers.items():
        if not _HEADER.fullmatch(header) or not template.isprintable() or not template.isascii():
            raise ValueError(f"headers.{header[:40]} must be a header of printable ASCII characters")
        for place in _PLACE.findall(template):
            if place.removeprefix("secrets.") not in secrets or not place.startswith("secrets."):
                raise ValueError(f"headers.{header} has the unknown placeholder {{{place}}}")
    if options.sign is not None and options.sign.secret not in secrets:
        raise ValueError(f"sign.secret is none of the secrets: {options.sign.secret!r}")


def _places(call: Call | CataloguePaths | BalancePaths) -> set[str]:
    body = msgspec.json.encode(call.body).decode() if isinstance(call, Call) else ""
    return {*_PLACE.findall(call.path), *_PLACE.findall(body)}


def _filled(template: Any, values: Mapping[str, str]) -> Any:
    """Returns a body with its placeholders replaced. A text that is only `{value_minor}` becomes a number."""
    if isinstance(template, dict):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    if template == "{value_minor}":
        return int(values["value_minor"])
    return _PLACE.sub(lambda place: values[place[1]], template)


def _at(content: object, path: str) -> object:
    """Returns the value at a path; None if there is none."""
    for name in path.split("."):
        if isinstance(content, dict):
            content = content.get(name)
        elif isinstance(content, list) and name.isdigit() and int(name) < len(content):
            content = content[int(name)]
        else:
            return None
    return content


def _text(content: object, path: str) -> str | None:
    found = _at(content, path)
    return found if isinstance(found, str) else None


def _text_or_nothing(content: object, path: str | None) -> str | None:
    """Returns a text; None if it is empty, or if there is none. Raises ValueError for anything else, such as a PIN that has lost its zeros as a number."""
    found = None if path is None else _at(content, path)
    if found is not None and not isinstance(found, str):
        raise ValueError("it is not text")
    return found or None


def _currency(content: object, path: str) -> str | None:
    """Returns a currency as ISO 4217 writes it: some suppliers write `gbp`."""
    found = _text(content, path)
    return None if found is None else found.upper()


def _offer(item: object, paths: CataloguePaths, major: Callable[[object, str], str]) -> model.Offer:
    sku, name, currency = (_text(item, path) for path in (paths.sku, paths.name, paths.currency))
    countries, amounts = _at(item, paths.countries), _at(item, paths.amounts)
    if (
        sku is None
        or name is None
        or currency is None
        or not isinstance(countries, list)
        or not isinstance(amounts, list)
    ):
        raise model.SupplierFailed("bad_answer")
    amounts = [major(amount, currency.upper()) for amount in amounts]
    return model.Offer(sku, name, currency, tuple(map(str, countries)), tuple(amounts))
