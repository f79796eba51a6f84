"""Passwords: kept by argon2id, compared alike whether there is one, and a few at a time."""

import asyncio

import pytest
from argon2 import PasswordHasher, Type, extract_parameters

from largesse.base.errors import Unavailable
from largesse.customers.passwords import Passwords, weakness


@pytest.fixture
def passwords() -> Passwords:
    return Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


async def test_only_the_right_one_is_right(passwords: Passwords) -> None:
    kept = await passwords.hash("four plain words here")
    assert kept.startswith("$argon2id$")
    assert "plain" not in kept
    assert await passwords.is_right(kept, "four plain words here")
    for wrong in ("four plain words herE", "", "x" * 500_000, "\ud800".encode("utf-8", "replace").decode()):
        assert not await passwords.is_right(kept, wrong)


async def test_nobodys_password_is_never_right_and_takes_as_long(passwords: Passwords) -> None:
    for guess in ("a password that nobody has", "", "\0" * 32):
        assert not await passwords.is_right(None, guess)
    kept = await passwords.hash("four plain words here")
    assert extract_parameters(passwords._nobodys) == extract_parameters(kept)
    assert not await passwords.is_right("broken", "a password that nobody has")


async def test_they_are_kept_by_what_is_recommended_at_least() -> None:
    """OWASP: argon2id with 19 MiB and two passes."""
    parameters = extract_parameters(await Passwords().hash("four plain words here"))
    assert (parameters.type, parameters.memory_cost, parameters.time_cost) == (Type.ID, 19_456, 2)
    assert parameters.parallelism == 1


async def test_what_is_kept_from_before_is_noticed(passwords: Passwords) -> None:
    kept = await passwords.hash("four plain words here")
    assert not passwords.is_outdated(kept)
    assert Passwords().is_outdated(kept)


async def test_too_many_at_once_are_told_to_come_back(passwords: Passwords) -> None:
    for _ in range(2):  # who is done makes room for one
        done = await asyncio.gather(*(passwords.is_right(None, "x") for _ in range(120)), return_exceptions=True)
        assert {type(one) for one in done} == {bool, Unavailable}
        assert done.count(False) == 100


@pytest.mark.parametrize(
    ("password", "said"),
    [
        ("123456789", "short"),
        ("a b c d e!", None),
        ("x7" * 100 + "y", "long"),
        ("xy7z" * 50, None),
        ("PASSWORD123", "common"),
        ("ada.lovelace@acme.example", "common"),
        ("Ada.Lovelace", "common"),
        ("abababababab", "common"),
        ("four plain words here", None),
    ],
)
def test_which_may_be_chosen(password: str, said: str | None) -> None:
    assert weakness(password, "ada.lovelace@acme.example") == said
