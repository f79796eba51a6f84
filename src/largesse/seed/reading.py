"""Reads a whole seed file."""

import codecs
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from largesse.base.errors import OperatorError
from largesse.catalogue.service import MOST_COLLECTIONS
from largesse.seed.customers import Gifts, check_customer, check_keys, read_customer
from largesse.seed.document import Collection, SeedFile
from largesse.seed.fields import Fields, SeedErrors
from largesse.seed.gifts import PictureFolder, read_collection, read_product
from largesse.seed.nodes import compose

MAX_BYTES = 32 * 2**20


def read_seed(path: Path) -> SeedFile:
    """Returns the seed file at a path.

    Raises OperatorError with file and line for each mistake (one per line, the first 20), or if the file cannot be
    read, is not UTF-8 or exceeds 32 MiB.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror or error}") from None
    return parse_seed(content, path.name, path.parent)


def demo_seed() -> SeedFile:
    """Returns the seed file of `largesse demo`."""
    folder = resources.files("largesse.seed")
    return parse_seed(folder.joinpath("demo.yaml").read_bytes(), "demo.yaml", folder)


def parse_seed(content: bytes, file: str, folder: Traversable | None = None) -> SeedFile:
    """Reads `content`, the bytes of the file named `file` in `folder`, as `read_seed` does. Without a folder it has no pictures."""
    if len(content) > MAX_BYTES:
        raise OperatorError(f"{file}:1: a seed file has at most {MAX_BYTES // 2**20} MiB")
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise OperatorError(f"{file}:{line}: the file must be UTF-8") from None
    root = compose(text, file)
    if root is None:
        raise OperatorError(f"{file}:1: the file is empty")
    mistakes = SeedErrors(file)
    seed = _read(Fields(root, "", mistakes), mistakes, PictureFolder(folder))
    mistakes.refuse_any()
    return seed


def _read(fields: Fields, mistakes: SeedErrors, folder: PictureFolder) -> SeedFile:
    products = [(read_product(item, folder), item.is_valid) for item in fields.objects("products")]
    collections = [(read_collection(item), item.is_valid) for item in fields.objects("collections")]
    gifts = Gifts(
        {product.key: product if is_valid else None for product, is_valid in products},
        {collection.key: collection if is_valid else None for collection, is_valid in collections},
    )
    seed = SeedFile(
        file=mistakes.file,
        customers=tuple(read_customer(customer, gifts) for customer in fields.objects("customers")),
        products=tuple(product for product, _ in products),
        collections=tuple(collection for collection, _ in collections),
    )
    _check(fields.finish(seed), mistakes)
    return seed


def _check(seed: SeedFile, mistakes: SeedErrors) -> None:
    """Checks that no key is used twice, and the references between the three lists."""
    for keyed in (seed.customers, seed.products, seed.collections):
        check_keys(((one.place, one.key) for one in keyed), mistakes)
    for customer in seed.customers:
        check_customer(customer, mistakes)
    customers = {customer.key for customer in seed.customers}
    for product in seed.products:
        for number, key in enumerate(product.customers or ()):
            if key not in customers:
                mistakes.note(product.place, f"customers[{number}]", f"there is no customer {key!r}")
    products = {product.key for product in seed.products}
    for collection in seed.collections:
        if collection.customer is not None and collection.customer not in customers:
            mistakes.note(collection.place, "customer", f"there is no customer {collection.customer!r}")
        for number, key in enumerate(collection.products):
            if key not in products:
                mistakes.note(collection.place, f"products[{number}]", f"there is no product {key!r}")
    _check_own(seed.collections, mistakes)


def _check_own(collections: Sequence[Collection], mistakes: SeedErrors) -> None:
    """Checks that no customer has too many collections of its own."""
    counts = Counter[str]()
    for collection in collections:
        if collection.customer is not None and collection.active:
            counts[collection.customer] += 1
            if counts[collection.customer] == MOST_COLLECTIONS + 1:
                text = f"{collection.customer!r} must have at most {MOST_COLLECTIONS} collections of its own"
                mistakes.note(collection.place, "customer", text)
