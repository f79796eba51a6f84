"""What a test opens is closed at the end of a block, whatever became of it."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar


class _Closes(Protocol):
    async def close(self) -> Any: ...


Opened = TypeVar("Opened", bound=_Closes)


@asynccontextmanager
async def closing(opening: Awaitable[Opened]) -> AsyncIterator[Opened]:
    opened = await opening
    try:
        yield opened
    finally:
        await opened.close()
