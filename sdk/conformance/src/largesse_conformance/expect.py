"""Expectations of checks. Each function raises Failed with what was found instead."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from largesse_conformance.http import Answer
from largesse_conformance.outcome import Failed

# Currencies whose smallest unit is not a hundredth (ISO 4217).
_NO_DECIMALS = {
    "BIF",
    "CLP",
    "DJF",
    "GNF",
    "ISK",
    "JPY",
    "KMF",
    "KRW",
    "PYG",
    "RWF",
    "UGX",
    "VND",
    "VUV",
    "XAF",
    "XOF",
    "XPF",
}
_THREE_DECIMALS = {"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"}


def expect(condition: object, otherwise: str) -> None:
    """Raises Failed with this text unless the condition is true."""
    if not condition:
        raise Failed(otherwise)


def equal(found: Any, expected: Any, what: str) -> None:
    """Raises Failed unless both are equal and of the same type: true is not 1."""
    is_equal = found == expected and isinstance(found, bool) == isinstance(expected, bool)
    expect(is_equal, f"{what} is {found!r}, not {expected!r}.")


def status(answer: Answer, *expected: int) -> None:
    """Raises Failed unless the answer has one of these statuses."""
    names = " or ".join(str(one) for one in expected)
    expect(answer.status in expected, f"{answer.described()}; expected {names}.")


def found(answer: Answer, expected: int = 200) -> Any:
    """Returns the JSON of an answer. Raises Failed unless it has the expected status."""
    status(answer, expected)
    return answer.body()


def listed(answer: Answer) -> list[dict[str, Any]]:
    """Returns the items of a list."""
    items = found(answer)
    expect(isinstance(items, list), f"{answer.request} returned no array.")
    for item in items:
        expect(isinstance(item, dict), f"{answer.request} returned an array with something that is not an object.")
    return list(items)


def refused(answer: Answer, expected: int, naming: str | None = None) -> dict[str, Any]:
    """Returns the body of an error; `naming` is what its detail must contain."""
    status(answer, expected)
    body = answer.body()
    if not isinstance(body, dict):
        raise Failed(f"{answer.request} returned {answer.status} with a body that is not an object.")
    if naming is not None:
        detail = str(body.get("detail"))
        expect(
            naming in detail,
            f"{answer.request} returned {answer.status}, but `detail` does not name {naming}: {detail}",
        )
    return body


def member(item: Any, name: str) -> Any:
    """Returns a member of an object."""
    if not isinstance(item, dict):
        raise Failed(f"Expected an object with `{name}`.")
    expect(name in item, f"`{name}` is missing.")
    return item[name]


def amount(value: Any, what: str) -> Decimal:
    """Returns a JSON number exactly. Raises Failed for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise Failed(f"{what} is {value!r}, which is not a JSON number.")
    return Decimal(value)


def decimals(currency: str) -> int:
    """Returns how many decimals an amount of a currency may have."""
    return 0 if currency in _NO_DECIMALS else 3 if currency in _THREE_DECIMALS else 2


def no_finer(value: Any, currency: str, what: str) -> None:
    """Raises Failed if an amount is finer than its currency's smallest unit."""
    exact = amount(value, what)
    unit = Decimal(1).scaleb(-decimals(currency))
    expect(exact % unit == 0, f"{what} is {value}, finer than {currency} has.")


def unique(values: Iterable[Any], what: str) -> None:
    """Raises Failed if a value is not unique."""
    seen = list(values)
    expect(len(set(seen)) == len(seen), f"{what} are not all different.")
