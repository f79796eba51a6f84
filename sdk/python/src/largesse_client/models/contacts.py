"""Contacts of a customer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from largesse_client.models.opening import Shape


class Contact(Shape, frozen=True, kw_only=True):
    """A contact. `birthday` is a month and a day, such as 03-14. Lists leave `address` out. The repr leaves out all but the id."""

    id: int
    email: str
    name: str
    language: str | None
    country: str | None
    birthday: str | None
    start_date: str | None
    external_id: str | None
    active: bool
    groups: tuple[str, ...]
    fields: Mapping[str, str]
    address: str | None = None

    def __repr__(self) -> str:
        return f"Contact(id={self.id}, …)"


class ContactChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A change of a contact. Members left out do not change, and None removes a value."""

    email: str | UnsetType = UNSET
    name: str | UnsetType | None = UNSET
    language: str | UnsetType | None = UNSET
    country: str | UnsetType | None = UNSET
    birthday: str | UnsetType | None = UNSET
    start_date: str | UnsetType | None = UNSET
    address: str | UnsetType | None = UNSET
    external_id: str | UnsetType | None = UNSET
    active: bool | UnsetType = UNSET
    groups: Sequence[str] | UnsetType = UNSET
    fields: Mapping[str, str | None] | UnsetType = UNSET


class SavedContacts(Shape, frozen=True, kw_only=True):
    """The result of saving contacts. `ids` are their ids, in the order in which they were given."""

    created: int
    changed: int
    ids: tuple[int, ...]
