"""Commands of operators about suppliers: finds a description, tries it out, reads the catalogue as a seed file, and lists costs."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import date

import msgspec
import yaml

from largesse.base.errors import OperatorError
from largesse.base.settings import Settings
from largesse.base.text import cleaned
from largesse.catalogue.content import TWICE, Fault, Faulty, ProductContent
from largesse.catalogue.draft_store import read_many
from largesse.catalogue.editing import MOST_AT_ONCE, import_drafts
from largesse.catalogue.sheet import BAD_KEY, UNKNOWN_CURRENCY
from largesse.catalogue.store import list_currencies
from largesse.catalogue.typed import Names, read_product
from largesse.customers.actor import Actor
from largesse.db.pool import Connection, Row
from largesse.suppliers import store
from largesse.suppliers.description import Description, OpenSupplier, open_supplier, read_descriptions
from largesse.suppliers.model import Offer, SupplierFailed, SupplierLine, Unknown
from largesse.webhooks.resolver import Resolver

# An order that no supplier has, as our ids are never all zeros.
_NO_ORDER = SupplierLine("00000000-0000-0000-0000-000000000000", "none", 1, "GBP", "GB")

_LONGEST_FAULT = 300  # characters

_NOT_ALLOWED = "its url must be https and lead to a public address, unless allowed_networks names its network"
# Explanations for a call without a clear answer, by the word for logs.
_WHY = {
    "bad_answer": "its answer is not JSON, or lacks what the description says",
    "connect": "nothing listens at its url",
    "connection_lost": "the connection broke off",
    "dns": "the host name of its url is not known",
    "forbidden_address": _NOT_ALLOWED,
    "forbidden_target": _NOT_ALLOWED,
    "foreign_answer": "its answer has the id of another order",
    "malformed_voucher": "its voucher cannot be read",
    "timeout": "it does not answer within timeout_s",
    "tls": "its certificate is not accepted",
    "unknown_status": "its answer has a status that statuses does not list",
}


def find_description(settings: Settings, name: str) -> Description:
    """Returns the description of the supplier with that name. Raises OperatorError."""
    found = read_descriptions(settings.suppliers)
    for description in found:
        if description.name == name:
            return description
    known = ", ".join(sorted(description.name for description in found)) or "none"
    raise OperatorError(f"LARGESSE_SUPPLIERS describes no supplier {name!r}; it describes: {known}")


@asynccontextmanager
async def opened(description: Description) -> AsyncIterator[OpenSupplier]:
    """Opens a supplier for a command. A call without a clear answer ends it with OperatorError."""
    resolver = Resolver()
    try:
        supplier = open_supplier(description, resolver.look_up)
        try:
            yield supplier
        except SupplierFailed as failed:
            raise OperatorError(f"supplier {description.name}: {_said(failed.error)}") from None
        finally:
            await supplier.close()
    finally:
        await resolver.close()


def _said(error: str) -> str:
    """Returns the word for logs with its explanation, if there is one."""
    status = error.removeprefix("status_")
    if status != error:
        return f"{error}: http_statuses does not list the HTTP status {status} that it answers with"
    return f"{error}: {_WHY[error]}" if error in _WHY else error


async def try_out(description: Description) -> str:
    """Polls for an order that does not exist, which costs nothing. Returns a sentence for the operator. Raises OperatorError for a wrong answer."""
    async with opened(description) as supplier:
        answer = await supplier.supplier.poll(_NO_ORDER)
        if not isinstance(answer, Unknown):
            raise OperatorError(
                f"supplier {description.name} answers a poll for an order that does not exist with `{type(answer).__name__.lower()}`: "
                "it must be `unknown`, otherwise an order that never arrived could be taken for one that did"
            )
        balance = await supplier.supplier.balance()
    left = "" if balance is None else f" Its balance is {balance.amount_minor:,} minor units of {balance.currency}."
    return f"Supplier {description.name} answers, and says that it does not have an order that does not exist.{left}"


def as_seed(supplier: str, offers: Sequence[Offer]) -> str:
    """Returns the offers as products of a seed file. They are inactive, so that a person decides which are sold."""
    products = [
        {
            "key": _key(supplier, offer),
            "name": offer.name,
            "digital": True,
            "currency": offer.currency,
            "countries": list(offer.countries),
            "denominations": [_number(amount) for amount in offer.amounts],
            "suppliers": [supplier],
            "active": False,
        }
        for offer in offers
    ]
    text: str = yaml.safe_dump({"products": products}, sort_keys=False, allow_unicode=True)
    return text


def _number(amount: str) -> float | int | str:
    try:
        number = float(amount)
    except ValueError:
        return amount  # a load then reports the mistake
    return int(number) if number.is_integer() else number


async def list_costs(connection: Connection, since: date, until: date) -> list[Row]:
    """Returns the costs of vouchers bought from `since` to `until`, both included, by supplier, product and currency."""
    return await connection.fetch(store.COSTS, since, until)


class ImportedOffers(msgspec.Struct, frozen=True):
    """The result of importing offers: how many were saved as drafts, how many products existed already, and the faults of the others."""

    saved: int
    known: int
    refused: Sequence[str]


async def import_offers(actor: Actor, connection: Connection, supplier: str, offers: Sequence[Offer]) -> ImportedOffers:
    """Saves offers as drafts of products that nobody can send yet, 1,000 in a transaction. Products that exist stay as they are."""
    currencies = frozenset(await list_currencies(connection))
    contents: dict[str, ProductContent] = {}
    refused = []
    for offer in offers:
        key = _key(supplier, offer)
        if key in contents:
            refused.append(_in_words(offer, Fault("key", TWICE, {"what": key})))
            continue
        try:
            contents[key] = _content_of(supplier, offer, currencies)
        except Faulty as faulty:
            refused += [_in_words(offer, fault) for fault in faulty.faults]
    known = await read_many(connection, "product", list(contents))
    new = [(key, content) for key, content in contents.items() if key not in known]
    for start in range(0, len(new), MOST_AT_ONCE):
        await import_drafts(actor, "product", dict(new[start : start + MOST_AT_ONCE]), {}, f"catalogue of {supplier}")
    return ImportedOffers(len(new), len(known), refused)


def _in_words(offer: Offer, fault: Fault) -> str:
    """Returns a fault in one line. Its texts are the supplier's, and must not act on the terminal that shows them."""
    return cleaned(f"{offer.sku}: {fault.field}: {fault.english}", " ")[:_LONGEST_FAULT]


def _content_of(supplier: str, offer: Offer, currencies: Collection[str]) -> ProductContent:
    if offer.currency.upper() not in currencies:
        raise Faulty([Fault("currency", UNKNOWN_CURRENCY, {"what": offer.currency[:40]})])
    if _key(supplier, offer).strip(" ,;") != _key(supplier, offer) or not _key(supplier, offer).isprintable():
        raise Faulty([Fault("key", BAD_KEY)])
    typed = {
        "name": offer.name,
        "active": "yes",
        "countries": ", ".join(offer.countries),
        "denominations": ", ".join(offer.amounts),
        "suppliers": supplier,
    }
    return read_product(typed, Names({}), is_digital=True, currency=offer.currency.upper())


def _key(supplier: str, offer: Offer) -> str:
    return f"{supplier}-{offer.sku}".replace("/", "-").replace(",", "-").replace(";", "-")[:100]
