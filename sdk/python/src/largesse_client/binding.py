"""Operations are defined once, as methods that return a Call. Through a client, they become functions that perform the call.

    class Orders(Resource[M]):
        @operation
        def get(self, reference: str) -> Call[Order]: ...

`Orders[Sync].get` is a function that returns an Order, and `Orders[Async].get` one that returns a coroutine of an Order. The overloads below
tell type checkers the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from largesse_client.calls import Call, Pages
from largesse_client.driving import AsyncDriver, Driver

P = ParamSpec("P")
T = TypeVar("T")


class Sync:
    """Marks resources of the client that blocks."""


class Async:
    """Marks resources of the client that is awaited."""


M = TypeVar("M", Sync, Async)


class Resource(Generic[M]):
    """Operations that belong together."""

    def __init__(self, driver: Driver | AsyncDriver) -> None:
        self._driver: Any = driver


class operation(Generic[P, T]):  # noqa: N801 - a decorator
    """Turns a method that returns a Call into one that performs the call and returns the value of its answer."""

    def __init__(self, define: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.__wrapped__ = define
        self.__doc__ = define.__doc__

    @overload
    def __get__(self, resource: None, owner: type) -> Self: ...
    @overload
    def __get__(self, resource: Resource[Sync], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: type) -> Callable[P, Coroutine[object, None, T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Any:
        if resource is None:
            return self
        define, perform = self.__wrapped__, resource._driver.perform  # noqa: SLF001 - its own

        def ask(*args: P.args, **kwargs: P.kwargs) -> Any:
            return perform(partial(define, resource, *args, **kwargs))

        ask.__doc__ = self.__doc__
        return ask


class listing(Generic[P, T]):  # noqa: N801 - a decorator
    """Turns a method that returns Pages into one that returns an iterator over their items."""

    def __init__(self, define: Callable[Concatenate[Any, P], Pages[T]]) -> None:
        self.__wrapped__ = define
        self.__doc__ = define.__doc__

    @overload
    def __get__(self, resource: None, owner: type) -> Self: ...
    @overload
    def __get__(self, resource: Resource[Sync], owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Any:
        if resource is None:
            return self
        define, each = self.__wrapped__, resource._driver.each  # noqa: SLF001 - its own

        def ask(*args: P.args, **kwargs: P.kwargs) -> Any:
            return each(define(resource, *args, **kwargs))

        ask.__doc__ = self.__doc__
        return ask
