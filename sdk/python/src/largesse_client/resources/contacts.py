"""Contacts of a customer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from largesse_client import arguments
from largesse_client.binding import M, Resource, listing, operation
from largesse_client.calls import Call, Pages, Query, get, nothing, pages, reader
from largesse_client.models import Contact, ContactChange, SavedContacts

_MOST = 1_000


class Contacts(Resource[M]):
    """Contacts of the customer, in the key's environment."""

    @listing
    def list(
        self,
        *,
        q: str | None = None,
        group: int | None = None,
        active: bool | None = None,
        after: int = 0,
        page_size: int = 200,
    ) -> Pages[Contact]:
        """Lists contacts after the one with the id `after`, in the order of their ids, without postal addresses."""

        def then(query: Query, page: Sequence[Contact]) -> Query:
            return {**query, "after": page[-1].id}

        shown = None if active is None else "true" if active else "false"
        start = arguments.number("after", after, least=0)
        query: Query = {"q": q, "group": group, "active": shown, "after": start}
        size = arguments.number("page_size", page_size, most=arguments.MAX_PAGE)
        return pages("/contacts", Contact, query, size, then)

    @operation
    def get(self, contact_id: int) -> Call[Contact]:
        """Returns one contact with its postal address."""
        return get(_path(contact_id), Contact)

    @operation
    def create(self, contact: ContactChange) -> Call[Contact]:
        """Creates a contact. The request is never repeated automatically; `save` is."""
        return Call("POST", "/contacts", reader(Contact), _body("contact", contact), is_repeatable=False)

    @operation
    def change(self, contact_id: int, change: ContactChange) -> Call[Contact]:
        """Changes a contact."""
        return Call("PATCH", _path(contact_id), reader(Contact), _body("change", change))

    @operation
    def save(self, contacts: Sequence[ContactChange]) -> Call[SavedContacts]:
        """Creates and changes up to 1,000 contacts, each with `external_id` and `email`: all of them, or none."""
        if not 0 < len(contacts) <= _MOST:
            raise arguments.refused("contacts", f"must have from 1 to {_MOST} elements, not {len(contacts)}.")
        return Call("POST", "/contacts/bulk", reader(SavedContacts), _body("contacts", {"contacts": contacts}))

    @operation
    def delete(self, contact_id: int) -> Call[None]:
        """Deletes a contact for good. Gifts that were sent stay."""
        return Call("DELETE", _path(contact_id), nothing, ends=True)


def _path(contact_id: int) -> str:
    return f"/contacts/{arguments.number('contact_id', contact_id)}"


def _body(argument: str, value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise arguments.refused(argument, "has a surrogate, which is only half of a character.") from None
