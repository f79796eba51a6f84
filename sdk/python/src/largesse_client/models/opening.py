"""The base classes of answers: structs that ignore unknown members, and enumerations that accept new words."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an answer. Ignores members that a later release of the service adds."""


class Word(StrEnum):
    """An enumeration of words. A word that a later release adds becomes a new member, which is equal to its text."""

    @classmethod
    def _missing_(cls, value: object) -> Word | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word
