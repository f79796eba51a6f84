"""How the catalogue is told to callers: whoever speaks to them says so, once for a process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from largesse.catalogue.collections import Collection
from largesse.catalogue.products import Product

# What callers are told, ready to be sent. The catalogue keeps it and never looks into it.
Told = bytes


class Telling(Protocol):
    """Makes of gifts what callers are told. A snapshot keeps that, as the same is asked for again and again."""

    def product(self, product: Product, country: str) -> Told:
        """A product as sold in `country`, one it is sold in."""

    def collection(self, collection: Collection) -> Told:
        """A collection."""

    def listed(self, told: Sequence[Told]) -> Told:
        """A list of gifts that have been told."""
