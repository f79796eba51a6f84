"""What the shapes of answers share: structs that pass over members nobody knows, and words that may become more."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Part of an answer. Members that a later release of the service adds are passed over."""


class Word(StrEnum):
    """A word out of those known today. One that a later release adds is a member of its own, and equal to its text."""

    @classmethod
    def _missing_(cls, value: object) -> Word | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word
