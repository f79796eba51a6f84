"""Paging by offset and limit."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class Paging(msgspec.Struct, frozen=True):
    """Which part of a list: `limit` items after the first `offset`."""

    offset: Annotated[int, Meta(ge=0, le=2_147_483_647, description="Items to skip")] = 0
    limit: Annotated[int, Meta(ge=1, le=200, description="Items to return at most")] = 100
