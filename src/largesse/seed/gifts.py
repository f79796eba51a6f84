"""Reads the products and collections of a seed file, with the pictures in its folder, and the values a template may have."""

from decimal import Decimal
from importlib.resources.abc import Traversable

from largesse.base.errors import InvalidRequest
from largesse.base.money import MAX_AMOUNT, canonical, to_minor, to_number
from largesse.catalogue import model
from largesse.catalogue.model import Collection as catalogue_Collection
from largesse.catalogue.model import Product as catalogue_Product
from largesse.catalogue.pictures import MAX_BYTES, Picture, PictureRefused, read_picture
from largesse.catalogue.service import MOST_PRODUCTS
from largesse.seed import values
from largesse.seed.document import Collection, Product
from largesse.seed.fields import Fields
from largesse.suppliers.model import NAME, NAME_RULE

_MAX_TOTAL_BYTES = 128 * 2**20  # for all pictures of one seed file


class PictureFolder:
    """Reads the pictures in a folder and its subfolders, each once. Without a folder there are none."""

    def __init__(self, folder: Traversable | None) -> None:
        self._folder = folder
        self._read: dict[str, Picture] = {}
        self._total_bytes = 0

    def picture(self, name: str) -> Picture:
        """Returns the picture in the file with that name, such as `pictures/coffee.png`. Raises PictureRefused."""
        if name not in self._read:
            picture = read_picture(self._content(name))
            self._total_bytes += len(picture.content)
            if self._total_bytes > _MAX_TOTAL_BYTES:
                raise PictureRefused(
                    f"is one too many: the pictures of a file have at most {_MAX_TOTAL_BYTES // 2**20} MiB together"
                )
            self._read[name] = picture
        return self._read[name]

    def _content(self, name: str) -> bytes:
        parts = name.split("/")
        if "\\" in name or ":" in name or any(part in {"", ".", ".."} for part in parts):
            raise PictureRefused("must be the name of a file beside the seed file, such as pictures/coffee.png")
        if self._folder is None:
            raise PictureRefused("cannot be found: the seed file is not in a folder")
        try:
            with self._folder.joinpath(*parts).open("rb") as file:
                content: bytes = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise PictureRefused(f"cannot be read: {error.strerror or error}") from None
        return content


_NAME_LENGTH = 200
_FILE_NAME_LENGTH = 200
_DIGITAL = ("countries", "denominations", "min_amount", "max_amount", "suppliers")
_MOST_SUPPLIERS = 10
_PHYSICAL = ("cost", "markup_percent", "postage", "vat_percent")


def read_product(fields: Fields, folder: PictureFolder) -> Product:
    """Returns the product that a mapping describes, with its picture from the folder. Adds mistakes to `fields`."""
    digital = fields.flag("digital")
    if not fields.is_valid:  # guessed from the other fields, so that the missing kind is the only mistake
        digital = any(map(fields.has, _DIGITAL))
    currency = fields.currency()
    fields.refuse(_PHYSICAL if digital else _DIGITAL, f"is for {'physical' if digital else 'digital'} gifts only")
    product = Product(
        place=fields.place,
        key=fields.key(),
        name=fields.text("name", _NAME_LENGTH, required=True) or "",
        digital=digital,
        currency=currency,
        countries=fields.each("countries", values.country, "{} comes twice", required=True) if digital else (),
        denominations_minor=fields.amounts("denominations", currency) if digital else (),
        min_amount_minor=fields.amount("min_amount", currency) if digital else None,
        max_amount_minor=fields.amount("max_amount", currency) if digital else None,
        cost_minor=None if digital else fields.amount("cost", currency, required=True),
        markup_percent=fields.one("markup_percent", values.percent) or Decimal(0),
        postage_minor={} if digital else fields.amounts_by_country("postage", currency),
        vat_percent=fields.by_country("vat_percent", values.percent),
        customers=fields.references("customers"),
        active=fields.flag("active", default=True),
        picture=_read_picture(fields, folder),
        description=fields.text("description", model.MAX_DESCRIPTION, line_ends=True),
        how_to_redeem=fields.text("how_to_redeem", model.MAX_HOW_TO_REDEEM, line_ends=True),
        terms=fields.text("terms", model.MAX_TERMS, line_ends=True),
        suppliers=_read_suppliers(fields) if digital else (model.STOCK,),
        managed=fields.managed(),
    )
    if digital:
        _check_amounts(product, fields)
    fields.finish(product)
    if fields.is_valid:
        _check_prices(product, fields)
    return product


def _read_suppliers(fields: Fields) -> tuple[str, ...]:
    names = fields.references("suppliers") or (model.STOCK,)
    if len(names) > _MOST_SUPPLIERS:
        fields.mistake("suppliers", f"must be at most {_MOST_SUPPLIERS}")
    for number, name in enumerate(names):
        if not NAME.fullmatch(name):
            fields.mistake(f"suppliers[{number}]", NAME_RULE)
    return names


def _read_picture(fields: Fields, folder: PictureFolder) -> Picture | None:
    name = fields.text("picture", _FILE_NAME_LENGTH)
    if name is None:
        return None
    try:
        return folder.picture(name)
    except PictureRefused as refused:
        fields.mistake("picture", f"{name!r} {refused}")
        return None


def _check_amounts(product: Product, fields: Fields) -> None:
    """Checks that a digital gift has denominations or a range."""
    if fields.has("denominations"):
        for name in ("min_amount", "max_amount"):
            if fields.has(name):
                fields.mistake(name, "is for gifts without `denominations`")
    elif not fields.has("min_amount") and not fields.has("max_amount"):
        fields.mistake("denominations", "is required, or `min_amount` and `max_amount`")
    elif not fields.has("min_amount") or not fields.has("max_amount"):
        fields.mistake("min_amount", "`min_amount` and `max_amount` are required together")
    elif (product.min_amount_minor or 0) > (product.max_amount_minor or MAX_AMOUNT):
        fields.mistake("min_amount", "must be at most `max_amount`")


def _check_prices(product: Product, fields: Fields) -> None:
    """Checks that no delivered price of a physical gift exceeds the largest amount."""
    most_minor = to_minor(MAX_AMOUNT, product.currency)
    gift = _catalogue_product(product)
    for country in product.postage_minor:
        if model.delivered_minor(gift, country) > most_minor:
            fields.mistake("cost", f"comes to more than {MAX_AMOUNT} delivered in {country}")
            return


def read_collection(fields: Fields) -> Collection:
    """Returns the collection that a mapping describes. Adds mistakes to `fields`."""
    currency = fields.currency()
    customer = fields.reference("customer")
    if customer is None:
        fields.refuse(["value"], "is for custom collections only, those with a `customer`")
    else:
        fields.refuse(["value_points", "allow_custom_value"], "is for curated collections only, without a `customer`")
    collection = Collection(
        place=fields.place,
        key=fields.key(),
        customer=customer,
        name=fields.text("name", _NAME_LENGTH, required=True) or "",
        country=fields.one("country", values.country, required=True) or "",
        currency=currency,
        value_minor=None if customer is None else fields.amount("value", currency, required=True),
        value_points_minor=fields.amounts("value_points", currency) if customer is None else (),
        allow_custom_value=customer is None and fields.flag("allow_custom_value", default=False),
        products=fields.references("products", required=True) or (),
        active=fields.flag("active", default=True),
        managed=fields.managed(),
    )
    if customer is not None:
        fields.at_most("products", MOST_PRODUCTS, collection.products)
    if customer is None and not fields.has("value_points") and not collection.allow_custom_value:
        fields.mistake("value_points", "is required, or `allow_custom_value: true`")
    return fields.finish(collection)


def gift_value(gift: Product | Collection, country: str, value_minor: int | None) -> int:
    """Returns the value of one code: `value_minor`, or the only possible value if it is None.

    Raises ValueError, naming the limit, if the gift cannot be sent at that value.
    """
    value = None if value_minor is None else to_number(value_minor, gift.currency)
    try:
        if isinstance(gift, Product):
            return model.gift_price(_catalogue_product(gift), country, value).value_minor
        if gift.value_minor is None:
            return model.collection_price(_catalogue_collection(gift), value).value_minor
    except InvalidRequest as error:
        # Without the name of the field, which the mistake already names.
        raise ValueError(error.detail.removeprefix("`value` ").removesuffix(".")) from None
    if value_minor not in (None, gift.value_minor):
        raise ValueError(
            f"must be {canonical(gift.value_minor, gift.currency)}, the value of the collection, or left out"
        )
    return gift.value_minor


def sold_in(product: Product) -> frozenset[str]:
    """Returns the countries a product is sold in."""
    return _catalogue_product(product).sold_countries


def _catalogue_product(product: Product) -> catalogue_Product:
    lowest, highest = product.min_amount_minor, product.max_amount_minor
    return catalogue_Product(
        id=0,
        name=product.name,
        is_digital=product.digital,
        currency=product.currency,
        countries=frozenset(product.countries),
        denominations_minor=product.denominations_minor,
        range_minor=None if lowest is None or highest is None else (lowest, highest),
        cost_minor=product.cost_minor or 0,
        markup_percent=product.markup_percent,
        postage_minor=product.postage_minor,
        vat_percent=product.vat_percent,
    )


def _catalogue_collection(collection: Collection) -> catalogue_Collection:
    return catalogue_Collection(
        id=0,
        name=collection.name,
        country=collection.country,
        currency=collection.currency,
        value_minor=collection.value_minor,
        value_points_minor=collection.value_points_minor,
        allow_custom_value=collection.allow_custom_value,
    )
