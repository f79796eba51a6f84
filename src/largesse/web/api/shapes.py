"""The JSON of products and collections (docs/contract.md, Products and Collections), and functions that make JSON from other values."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from largesse.base.money import canonical, label, prefix, to_number
from largesse.catalogue.listing import Serialized
from largesse.catalogue.model import Collection, Details, Product, delivered_minor
from largesse.catalogue.pictures import picture_path

_encode = msgspec.json.Encoder().encode
Shape = TypeVar("Shape", bound=Struct)

Id = Annotated[int, Meta(ge=1, le=2**31 - 1, extra_json_schema={"format": "int32"})]
Amount = Annotated[float, Meta(ge=0, extra_json_schema={"format": "double"})]
Currency = Annotated[
    str, Meta(pattern="^[A-Z]{3}$", description="ISO 4217 currency code", examples=["GBP", "EUR", "JPY"])
]
Country = Annotated[
    str, Meta(pattern="^[A-Z]{2}$", description="ISO 3166-1 alpha-2 country code", examples=["GB", "IE"])
]
Prefix = Annotated[str, Meta(description="Display prefix of the currency", examples=["£", "€"])]


def in_shape(value: Any, shape: Any) -> bytes:
    """Returns a value, or a list of values, as the JSON of a shape with members of the same names."""
    return _encode(msgspec.convert(value, shape, from_attributes=True))


def shaped(shape: type[Shape], value: object, /, **others: Any) -> Shape:
    """Returns a shape, filled from the members of `value` with the same names and from `others`."""
    alike = {name: getattr(value, name) for name in shape.__struct_fields__ if name not in others}
    return shape(**alike, **others)


class ProductShape(Struct, rename="camel", frozen=True):
    """A product that can be sent to the requested country."""

    id: Annotated[Id, Meta(description="Pass as `productId` when sending", examples=[1])]
    name: Annotated[str, Meta(description="Product name", examples=["Coffee House e-gift"])]
    is_digital: Annotated[bool, Meta(description="Digital (e-voucher) or physical")]
    currency: Currency
    currency_prefix: Prefix
    total_price: Annotated[
        Amount | None,
        Meta(
            description="Fixed delivered total of a physical gift (marked-up cost, postage and VAT); "
            "null for a digital gift",
            examples=[None, 52.14],
        ),
    ]
    denominations: Annotated[
        list[Amount],
        Meta(
            description="Fixed amounts a digital gift can be sent at, ascending. Empty for a physical gift and "
            "for a digital gift that takes any amount in a range",
            examples=[[5.0, 10.0, 25.0]],
        ),
    ]
    denomination_choices: Annotated[
        dict[str, str],
        Meta(
            description="Each denomination as canonical text, with its label",
            examples=[{"5.00": "£5.00", "10.00": "£10.00", "25.00": "£25.00"}],
        ),
    ]
    min_amount: Annotated[
        Amount | None, Meta(description="Lowest amount allowed; null for a physical gift", examples=[5.0])
    ]
    max_amount: Annotated[
        Amount | None, Meta(description="Highest amount allowed; null for a physical gift", examples=[25.0])
    ]
    requires_amount: Annotated[
        bool,
        Meta(description="False when the amount is implied: a physical gift, or a digital gift with one denomination"),
    ]
    label: Annotated[
        str,
        Meta(description="Display label: the name with its price", examples=["Coffee House e-gift (£5.00 to £25.00)"]),
    ]
    picture: Annotated[
        str | None,
        Meta(
            description="Address of its picture, PNG, JPEG or WebP, which anybody may load; null where there is none. A picture that "
            "changes gets another address",
            examples=["https://gifts.example/pictures/5e2f0c9ab1d34f7e8a6b5c4d3e2f1a0b.png"],
        ),
    ]


Said = Annotated[str | None, Meta(description="With line breaks, in the language of the name; null if there is none")]


class _Texts(Struct, rename="camel", frozen=True):
    """The texts about a product."""

    description: Said
    how_to_redeem: Said
    terms: Said


class ProductInFullShape(ProductShape, rename="camel", frozen=True):
    """A product that can be sent to the requested country, with its texts."""

    description: Annotated[Said, Meta(examples=["Coffee, cake and more in 1,200 shops."])]
    how_to_redeem: Annotated[Said, Meta(examples=["Show the code at the till."])]
    terms: Annotated[Said, Meta(examples=["Valid for 12 months. No refunds."])]


class CollectionShape(Struct, rename="camel", frozen=True):
    """A collection of gifts that the recipient chooses from."""

    id: Annotated[Id, Meta(description="Pass as `collectionId` when sending", examples=[1])]
    name: Annotated[str, Meta(description="Collection name", examples=["Treats"])]
    kind: Annotated[
        Literal["curated", "custom"],
        Meta(description="`curated`: global, with value points; `custom`: this customer's own, of one fixed value"),
    ]
    country: Country
    currency: Currency
    currency_prefix: Prefix
    value: Annotated[
        Amount | None,
        Meta(
            description="Fixed value per recipient of a custom collection; null for a curated one",
            examples=[None, 25.0],
        ),
    ]
    requires_value: Annotated[bool, Meta(description="True for a curated collection, false for a custom one")]
    allow_custom_value: Annotated[
        bool, Meta(description="Whether a curated collection takes any positive amount, not its value points alone")
    ]
    value_points: Annotated[
        list[Amount],
        Meta(
            description="Value points of a curated collection, ascending; empty for a custom one",
            examples=[[10.0, 25.0, 50.0]],
        ),
    ]
    value_choices: Annotated[
        dict[str, str] | None,
        Meta(
            description="Each value point as canonical text, with its label; null when there is nothing to pick",
            examples=[{"10.00": "£10.00", "25.00": "£25.00", "50.00": "£50.00"}],
        ),
    ]
    min_value: Annotated[
        Amount | None, Meta(description="Lowest value point; null without value points", examples=[10.0])
    ]
    max_value: Annotated[
        Amount | None, Meta(description="Highest value point; null without value points", examples=[50.0])
    ]
    label: Annotated[
        str, Meta(description="Display label: the name with its value", examples=["Treats (£10.00 to £50.00)"])
    ]


def product_shape(product: Product, country: str, public_url: str) -> ProductShape:
    """Returns a product as sent to `country`. Its picture is below `public_url`. Raises KeyError for a physical gift that is not sold there."""
    currency = product.currency
    limits = None if not product.is_digital else product.limits_minor
    total_minor = None if product.is_digital else delivered_minor(product, country)
    points = product.denominations_minor if product.is_digital else ()
    return ProductShape(
        id=product.id,
        name=product.name,
        is_digital=product.is_digital,
        currency=currency,
        currency_prefix=prefix(currency),
        total_price=None if total_minor is None else to_number(total_minor, currency),
        denominations=[to_number(minor, currency) for minor in points],
        denomination_choices=_choices(points, currency),
        min_amount=None if limits is None else to_number(limits[0], currency),
        max_amount=None if limits is None else to_number(limits[1], currency),
        requires_amount=product.is_digital and len(points) != 1,
        label=_label(product.name, limits if total_minor is None else (total_minor, total_minor), currency),
        picture=public_url + picture_path(product.picture) if product.picture else None,
    )


def product_in_full(product: Serialized, said: Details) -> bytes:
    """Returns a ProductInFullShape in JSON, from a serialized product."""
    return product[:-1] + b"," + _encode(_Texts(said.description, said.how_to_redeem, said.terms))[1:]


def collection_shape(collection: Collection) -> CollectionShape:
    """Returns a collection with amounts in major units: a curated one has choices, a custom one a value."""
    currency = collection.currency
    if collection.value_minor is not None:
        points: tuple[int, ...] = ()
        shown: tuple[int, ...] = (collection.value_minor, collection.value_minor)
    else:
        points = collection.value_points_minor
        shown = points[:1] + points[-1:]
    return CollectionShape(
        id=collection.id,
        name=collection.name,
        kind="curated" if collection.value_minor is None else "custom",
        country=collection.country,
        currency=currency,
        currency_prefix=prefix(currency),
        value=None if collection.value_minor is None else to_number(collection.value_minor, currency),
        requires_value=collection.value_minor is None,
        allow_custom_value=collection.value_minor is None and collection.allow_custom_value,
        value_points=[to_number(minor, currency) for minor in points],
        value_choices=_choices(points, currency) or None,
        min_value=to_number(points[0], currency) if points else None,
        max_value=to_number(points[-1], currency) if points else None,
        label=_label(collection.name, shown, currency),
    )


class CatalogueInJson:
    """Serializes the catalogue as JSON."""

    def __init__(self, public_url: str) -> None:
        self._public_url = public_url

    def product(self, product: Product, country: str) -> Serialized:
        """Returns a ProductShape."""
        return _encode(product_shape(product, country, self._public_url))

    def collection(self, collection: Collection) -> Serialized:
        """Returns a CollectionShape."""
        return _encode(collection_shape(collection))

    def listed(self, serialized: Sequence[Serialized]) -> Serialized:
        """Returns the JSON array of serialized items."""
        return b"[" + b",".join(serialized) + b"]"


def _choices(points_minor: Sequence[int], currency: str) -> dict[str, str]:
    return {canonical(minor, currency): label(minor, currency) for minor in points_minor}


def _label(name: str, limits_minor: Sequence[int] | None, currency: str) -> str:
    """Returns `name` with its price or its two limits; with the currency alone if there are none."""
    if not limits_minor:
        return f"{name} ({currency})"
    lowest, highest = (label(minor, currency) for minor in limits_minor)
    return f"{name} ({lowest})" if lowest == highest else f"{name} ({lowest} to {highest})"
