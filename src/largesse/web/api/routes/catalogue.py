"""GET /products, /products/{id}, /collections, /collections/{id}, /wrappings and /templates."""

from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict

from largesse.base.batching import Receiver
from largesse.base.errors import NotFound
from largesse.base.money import MAX_AMOUNT
from largesse.branding.service import read_brand
from largesse.catalogue.model import NOTHING_SAID
from largesse.catalogue.products import Filters
from largesse.catalogue.snapshot import Snapshot
from largesse.catalogue.store import read_details
from largesse.customers.restrictions import READ
from largesse.orders.options import ALIASES, WRAPPINGS
from largesse.orders.request import DEFAULT_COUNTRY, Country
from largesse.templates.store import Template, list_templates
from largesse.web.api.operation import ID_IN_PATH, Call, Operation
from largesse.web.api.reading import PagingNewestFirst
from largesse.web.api.shapes import CollectionShape, ProductInFullShape, ProductShape, product_in_full, shaped
from largesse.web.kit.asgi import Reply, encode_json
from largesse.web.kit.services import Services

Currency = Annotated[
    str, Meta(pattern="^[A-Za-z]{3}$", max_length=3, description="ISO 4217 currency code", examples=["GBP"])
]
Amount = Annotated[
    float, Meta(ge=0, le=MAX_AMOUNT, description="Only what can be sent for this amount or less", examples=[25.0])
]

_PRODUCT = {
    "id": 1,
    "name": "Coffee House e-gift",
    "isDigital": True,
    "currency": "GBP",
    "currencyPrefix": "£",
    "totalPrice": None,
    "denominations": [5.0, 10.0],
    "denominationChoices": {"5.00": "£5.00", "10.00": "£10.00"},
    "minAmount": 5.0,
    "maxAmount": 10.0,
    "requiresAmount": True,
    "label": "Coffee House e-gift (£5.00 to £10.00)",
    "picture": "https://gifts.example/pictures/5e2f0c9ab1d34f7e8a6b5c4d3e2f1a0b.png",
}
_COLLECTION = {
    "id": 1,
    "name": "Treats",
    "kind": "curated",
    "country": "GB",
    "currency": "GBP",
    "currencyPrefix": "£",
    "value": None,
    "requiresValue": True,
    "allowCustomValue": False,
    "valuePoints": [10.0, 25.0],
    "valueChoices": {"10.00": "£10.00", "25.00": "£25.00"},
    "minValue": 10.0,
    "maxValue": 25.0,
    "label": "Treats (£10.00 to £25.00)",
}


class ProductQuery(msgspec.Struct, frozen=True):
    """The country a product is sent to."""

    country: Country = DEFAULT_COUNTRY


class ProductsQuery(ProductQuery, frozen=True):
    """Filters and paging of products."""

    currency: Currency | None = None
    amount: Amount | UnsetType = UNSET  # not None, because `amount=null` is invalid
    keyword: (
        Annotated[str, Meta(max_length=200, description="Words of the name, in any order", examples=["coffee"])] | None
    ) = None
    page: Annotated[int, Meta(ge=1, le=1_000_000, description="1-based")] = 1
    limit: Annotated[int, Meta(ge=1, le=200, description="Products a page")] = 100


class CollectionsQuery(msgspec.Struct, frozen=True):
    """Filters of collections."""

    country: Country | None = None
    currency: Currency | None = None
    amount: Amount | UnsetType = UNSET  # not None, because `amount=null` is invalid


class WrappingShape(msgspec.Struct, rename="camel"):
    """A gift wrapping: one for all customers, or one of the customer's own."""

    key: Annotated[str, Meta(description="Pass as `wrappingKey` when sending")]
    label: Annotated[str, Meta(description="Display label")]
    aliases: Annotated[list[str], Meta(description="Other keys that name the same wrapping")]


_KNOWN = [
    WrappingShape(
        key, key.replace("-", " ").capitalize(), sorted(alias for alias, named in ALIASES.items() if named == key)
    )
    for key in WRAPPINGS
]


async def _products(services: Services, call: Call) -> Reply:
    snapshot = await call.snapshot(services)
    if _is_filtered(call.query):
        await services.catalogue.prepare(snapshot, *_filters(call))
    return _listed(snapshot, call)


def _products_at_once(services: Services, call: Call, _: Receiver[bytes]) -> Reply | bool:
    snapshot = call.loaded_snapshot(services)
    return snapshot is not None and not _is_filtered(call.query) and _listed(snapshot, call)


def _listed(snapshot: Snapshot, call: Call) -> Reply:
    return Reply(snapshot.serialized_products(*_filters(call), call.query.page, call.query.limit))


def _is_filtered(query: ProductsQuery) -> bool:
    return bool(query.currency or query.amount is not UNSET or query.keyword)


def _filters(call: Call) -> tuple[int, Filters]:
    query: ProductsQuery = call.query
    filters = Filters(query.country.upper(), _upper(query.currency), _exact(query.amount), query.keyword)
    return call.principal.customer_id, filters


async def _product(services: Services, call: Call) -> Reply:
    snapshot = await call.snapshot(services)
    country = call.query.country.upper()
    product_id = call.id()
    serialized = snapshot.serialized_product(product_id, country, call.principal.customer_id)
    async with services.database.connection(call.principal.scope) as connection:
        details = await read_details(connection, [product_id])
    return Reply(product_in_full(serialized, details.get(product_id, NOTHING_SAID)))


async def _collections(services: Services, call: Call) -> Reply:
    snapshot = await call.own_snapshot(services)
    query: CollectionsQuery = call.query
    return Reply(
        snapshot.serialized_collections(
            call.principal.customer_id, _upper(query.country), _upper(query.currency), _exact(query.amount)
        )
    )


async def _collection(services: Services, call: Call) -> Reply:
    snapshot = await call.own_snapshot(services)
    return Reply(snapshot.serialized_collection(call.id(), call.principal.customer_id))


async def _wrappings(services: Services, call: Call) -> Reply:
    principal = call.principal
    async with services.database.connection(principal.scope) as connection:
        brand = await read_brand(connection, principal.customer_id)
    own = [WrappingShape(one.key, one.name, []) for one in brand.wrappings]
    return Reply(encode_json(own + _KNOWN))


def _upper(text: str | None) -> str | None:
    return text.upper() if text is not None else None


def _exact(amount: float | UnsetType) -> Decimal | None:
    return None if amount is UNSET else Decimal(repr(amount))


class TemplateShape(msgspec.Struct, kw_only=True, rename="camel"):
    """A saved send preset."""

    id: Annotated[int, Meta(description="Pass as `templateId`")]
    name: Annotated[str, Meta(description="Name that people gave it")] | None
    gift_selection_type: Annotated[str, Meta(description="`gift` or `gifts`")] | None
    gift_product_id: Annotated[int, Meta(description="Set when it sends a single gift")] | None
    gifts_collection_id: Annotated[int, Meta(description="Set when the recipient chooses")] | None
    gift_name: Annotated[str, Meta(description="Name of the gift when the template was saved")] | None
    value: Annotated[float, Meta(description="Per-recipient face value")]
    currency: Annotated[str, Meta(description="Null when the gift has since been deleted")] | None
    country: Annotated[str, Meta(description="ISO 3166-1 alpha-2; the country it sends for")] | None
    wrapping_key: Annotated[str, Meta(description="Wrapping used unless overridden")] | None
    from_name: Annotated[str, Meta(description="Sender name unless overridden")] | None
    message: Annotated[str, Meta(description="Message unless overridden")] | None
    expiry_after_days: (
        Annotated[int, Meta(description="Days after claiming that gifts expire; null for the plan's policy")] | None
    )
    creation_date: Annotated[datetime, Meta(tz=True, description="When it was saved")]


async def _templates(services: Services, call: Call) -> Reply:
    async with services.database.connection(call.principal.scope) as connection:
        templates = await list_templates(connection, call.principal, **asdict(call.query))
    snapshot = await call.own_snapshot(services)
    return Reply(encode_json([_template_shape(template, snapshot) for template in templates]))


def _template_shape(template: Template, snapshot: Snapshot) -> TemplateShape:
    return shaped(
        TemplateShape,
        template,
        gift_selection_type="gift" if template.product_id is not None else "gifts",
        gift_product_id=template.product_id,
        gifts_collection_id=template.collection_id,
        currency=template.currency if snapshot.has_gift(template.product_id, template.collection_id) else None,
        creation_date=template.created_at,
    )


_operation = partial(Operation, tag="Catalogue", scope=READ)
OPERATIONS = (
    _operation(
        "GET",
        "/products",
        "listProducts",
        "List the products that can be sent to a country",
        _products,
        at_once=_products_at_once,
        description="In the order of their ids. Products that are sold to named customers appear only to them. A page with fewer than `limit` is the last.",
        shape=list[ProductShape],
        query=ProductsQuery,
        example=[_PRODUCT],
    ),
    _operation(
        "GET",
        "/products/{id}",
        "getProduct",
        "Get a product",
        _product,
        description="As sent to `country`. The `totalPrice` of a physical gift includes postage and VAT to that country.",
        shape=ProductInFullShape,
        query=ProductQuery,
        path_types=ID_IN_PATH,
        problems=(NotFound,),
        example=_PRODUCT
        | {
            "description": "Coffee, cake and more in 1,200 shops.",
            "howToRedeem": "Show the code at the till.",
            "terms": "Valid for 12 months. No refunds.",
        },
    ),
    _operation(
        "GET",
        "/collections",
        "listCollections",
        "List curated collections and the customer's own",
        _collections,
        description="Each has its own country and currency.",
        shape=list[CollectionShape],
        query=CollectionsQuery,
        example=[_COLLECTION],
    ),
    _operation(
        "GET",
        "/collections/{id}",
        "getCollection",
        "Get a collection",
        _collection,
        description="A curated collection, or one of the customer's own.",
        shape=CollectionShape,
        path_types=ID_IN_PATH,
        problems=(NotFound,),
        example=_COLLECTION,
    ),
    _operation(
        "GET",
        "/wrappings",
        "listWrappings",
        "List the known wrappings",
        _wrappings,
        shape=list[WrappingShape],
        description="The customer's own wrappings, then those that everybody has. Any other `wrappingKey` is stored with the order and looks like `default`.",
        example=[
            {"key": "default", "label": "Default", "aliases": []},
            {"key": "confetti", "label": "Confetti", "aliases": ["celebration", "congratulations"]},
        ],
    ),
    Operation(
        "GET",
        "/templates",
        "listTemplates",
        "List templates, newest first",
        _templates,
        "Templates",
        scope=READ,
        description="Presets of the customer, ready for `POST /send/template`.",
        shape=list[TemplateShape],
        query=PagingNewestFirst,
        example=[
            {
                "id": 1,
                "name": "Welcome",
                "giftSelectionType": "gift",
                "giftProductId": 1,
                "giftsCollectionId": None,
                "giftName": "Coffee House e-gift",
                "value": 10.0,
                "currency": "GBP",
                "country": "GB",
                "wrappingKey": "confetti",
                "fromName": "Acme",
                "message": "Welcome!",
                "expiryAfterDays": 90,
                "creationDate": "2030-01-02T09:00:00Z",
            }
        ],
    ),
)
