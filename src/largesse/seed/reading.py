"""Reading a whole world file."""

from __future__ import annotations

import codecs
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from largesse.base.errors import OperatorError
from largesse.seed.customers import Gifts, check_customer, check_keys, read_customer
from largesse.seed.document import Collection, Product, SeedFile
from largesse.seed.fields import Fields, SeedErrors
from largesse.seed.gifts import Beside, check_prices, read_collection, read_product
from largesse.seed.nodes import compose

_MAX_BYTES = 32 * 2**20


def read_seed(path: Path) -> SeedFile:
    """The world a file describes.

    Raises OperatorError with file and line for each mistake in it (one per line, the first 20), or when it cannot
    be read, is no UTF-8 or exceeds 32 MiB.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror or error}") from None
    return parse_seed(content, path.name, path.parent)


def demo_seed() -> SeedFile:
    """The world of `largesse demo`."""
    folder = resources.files("largesse.seed")
    return parse_seed(folder.joinpath("demo.yaml").read_bytes(), "demo.yaml", folder)


def parse_seed(content: bytes, file: str, folder: Traversable | None = None) -> SeedFile:
    """The world that `content`, the bytes of the file named `file` in `folder`, describes; OperatorError as for `read_seed`.

    Without a folder there are no pictures beside it.
    """
    if len(content) > _MAX_BYTES:
        raise OperatorError(f"{file}:1: a world file has at most {_MAX_BYTES // 2**20} MiB")
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise OperatorError(f"{file}:{line}: the file must be UTF-8") from None
    root = compose(text, file)
    if root is None:
        raise OperatorError(f"{file}:1: the file is empty")
    mistakes = SeedErrors(file)
    world = _read(Fields(root, "", mistakes), mistakes, Beside(folder))
    mistakes.refuse_any()
    return world


def _read(fields: Fields, mistakes: SeedErrors, beside: Beside) -> SeedFile:
    products = _read_products(fields, mistakes, beside)
    collections = _read_collections(fields, mistakes)
    gifts = Gifts(
        {product.key: product if faultless else None for product, faultless in products},
        {collection.key: collection if faultless else None for collection, faultless in collections},
    )
    world = SeedFile(
        file=mistakes.file,
        customers=tuple(read_customer(customer, gifts) for customer in fields.objects("customers")),
        products=tuple(product for product, _ in products),
        collections=tuple(collection for collection, _ in collections),
    )
    fields.done()
    _check(world, mistakes)
    return world


def _read_products(fields: Fields, mistakes: SeedErrors, beside: Beside) -> list[tuple[Product, bool]]:
    """The products, each with whether it is without mistakes."""
    found = []
    for product_fields in fields.objects("products"):
        before = len(mistakes)
        product = read_product(product_fields, beside)
        if len(mistakes) == before:
            check_prices(product, product_fields)
        found.append((product, len(mistakes) == before))
    return found


def _read_collections(fields: Fields, mistakes: SeedErrors) -> list[tuple[Collection, bool]]:
    """The collections, each with whether it is without mistakes."""
    found = []
    for collection_fields in fields.objects("collections"):
        before = len(mistakes)
        collection = read_collection(collection_fields)
        found.append((collection, len(mistakes) == before))
    return found


def _check(world: SeedFile, mistakes: SeedErrors) -> None:
    """Keys that come twice, and references between the three lists."""
    check_keys(((customer.place, customer.key) for customer in world.customers), mistakes)
    check_keys(((product.place, product.key) for product in world.products), mistakes)
    check_keys(((collection.place, collection.key) for collection in world.collections), mistakes)
    for customer in world.customers:
        check_customer(customer, mistakes)
    customers = {customer.key for customer in world.customers}
    for product in world.products:
        for number, key in enumerate(product.customers or ()):
            if key not in customers:
                mistakes.note(product.place, f"customers[{number}]", f"there is no customer {key!r}")
    products = {product.key for product in world.products}
    for collection in world.collections:
        if collection.customer is not None and collection.customer not in customers:
            mistakes.note(collection.place, "customer", f"there is no customer {collection.customer!r}")
        for number, key in enumerate(collection.products):
            if key not in products:
                mistakes.note(collection.place, f"products[{number}]", f"there is no product {key!r}")
