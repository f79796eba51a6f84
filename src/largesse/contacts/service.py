"""Operations on contacts: create, change, import and remove them. `groups` has those on groups and own fields.

All changes go through `_apply`: it checks them, finds the contacts they are about, and writes them set by set.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from largesse.base.email import email_key, is_erased
from largesse.base.errors import FieldError, InvalidRequest, NotFound
from largesse.contacts import store
from largesse.contacts.groups import (
    TooManyGroups,
    changing_contacts,
    group_ids,
    insert_groups,
    list_fields,
    save_members,
)
from largesse.contacts.model import (
    MOST_CONTACTS,
    MOST_GROUPS,
    MOST_GROUPS_EACH,
    Contact,
    ContactChange,
    ContactFault,
    checked_change,
    group_key,
)
from largesse.customers.actor import Actor, Transaction, require_same
from largesse.encryption.vault import Vault
from largesse.orders.recipients import MAX_ERRORS, count_more
from largesse.reports.filters import GroupFilter, OrderFilter
from largesse.reports.finder import find_orders

MOST_AT_ONCE = 5_000  # changes in one call
PAST_ORDERS = 2_000  # the newest orders that are searched for past recipients
_PAST_LINES = 10_000


class TooManyContacts(InvalidRequest, rule=f"A customer has at most {MOST_CONTACTS:,} contacts."):
    """The customer would have more contacts than it may."""


class ContactFaults(InvalidRequest):
    """Some changes of a call have faults, by their index in the call."""

    def __init__(self, faults: Mapping[int, InvalidRequest]) -> None:
        errors = [
            FieldError(f"#/contacts/{at}/{fault.field}", f"`contacts[{at}].{fault.detail.removeprefix('`')}")
            if isinstance(fault, ContactFault)
            else fault.errors[0]
            for at, fault in sorted(faults.items())[:MAX_ERRORS]
        ]
        super().__init__(errors[0].detail + count_more(errors), errors=errors)
        self.faults = {at: fault for at, fault in faults.items() if isinstance(fault, ContactFault)}


class Saved(msgspec.Struct, frozen=True):
    """What a call changed. `ids` are the ids of the contacts, in the order of the changes."""

    ids: tuple[int, ...]
    created: int
    changed: int


Key = Literal["email", "external_id"]
_NO_FAULTS: Mapping[int, InvalidRequest] = {}


async def create_contact(actor: Actor, vault: Vault, change: ContactChange) -> int:
    """Creates a contact and returns its id. Raises ContactFault, also for an address or id that another contact has, and TooManyContacts."""
    place = actor.place
    async with changing_contacts(actor) as transaction:
        own = [field.key for field in await list_fields(transaction.connection, place)]
        change = checked_change(change, own)
        if change.email is UNSET:
            raise ContactFault("email", "email_missing")
        taken = await store.find_contacts(
            transaction.connection, place, emails=[change.email], external_ids=[change.external_id or ""]
        )
        for one in taken:
            is_email = email_key(one.email) == email_key(change.email)
            raise ContactFault("email", "email_taken") if is_email else ContactFault("external_id", "external_id_taken")
        saved = await _apply_one(transaction, vault, change)
        await transaction.record("contact.created", f"contact {saved.ids[0]}")
    return saved.ids[0]


async def change_contact(
    actor: Actor, vault: Vault, contact_id: int, change: ContactChange, seen: Contact | None = None
) -> None:
    """Changes a contact. Raises NotFound, ContactFault as `create_contact` does, and ReadAgain if it is not `seen` any more."""
    async with changing_contacts(actor) as transaction:
        before = await store.read_contact(transaction.connection, actor.place, contact_id)
        require_same(seen, before)
        saved = await _apply_one(transaction, vault, change, before)
        if saved.changed:
            said = [name for name in ContactChange.__struct_fields__ if getattr(change, name) not in (UNSET, (), {})]
            await transaction.record("contact.changed", f"contact {contact_id}", after={"fields": ", ".join(said)})


async def remove_contacts(actor: Actor, ids: Collection[int]) -> int:
    """Deletes contacts for good, and returns how many there were. Their orders stay. Raises NotFound if there is none."""
    async with changing_contacts(actor) as transaction:
        count = await store.delete_contacts(transaction.connection, actor.place, ids)
        if not count:
            raise NotFound("There is no such contact.")
        subject = f"contact {next(iter(ids))}" if len(ids) == 1 else "contacts"
        await transaction.record("contact.removed", subject, before={"contacts": count})
    return count


async def save_contacts(
    actor: Actor,
    vault: Vault,
    changes: Sequence[ContactChange],
    *,
    key: Key = "email",
    faults: Mapping[int, InvalidRequest] | None = None,
) -> Saved:
    """Creates and changes contacts. `key` is what identifies the contact of a change: its address or its external id.

    If no contact has the external id, the address decides. Saves all changes or none. `faults` has the faults of changes that could not be
    read, by index; `changes` has empty changes there. Raises ContactFaults, TooManyContacts and TooManyGroups.
    """
    async with changing_contacts(actor) as transaction:
        saved = await _apply(transaction, vault, changes, key, faults=faults or {})
        if saved.created or saved.changed:
            after = {"created": saved.created, "changed": saved.changed}
            await transaction.record("contacts.imported", "contacts", after=after)
    return saved


async def add_past_recipients(actor: Actor, vault: Vault, user_id: int | None) -> Saved:
    """Creates a contact for each recipient of the newest orders who has none. With `user_id`, only from orders of that person."""
    place = actor.place
    async with changing_contacts(actor) as transaction:
        connection = transaction.connection
        # From the read models: a person may have placed few of a customer's orders.
        newest = await find_orders(
            connection,
            OrderFilter(customer_id=place[0], environment=place[1], group=GroupFilter(user_id=user_id)),
            PAST_ORDERS,
        )
        order_ids = [found.order_id for found in newest.places]
        past = await store.list_past_recipients(connection, place[0], order_ids, _PAST_LINES)
        known = await store.find_contacts(connection, place, emails=[email for email, _ in past])
        keys = {email_key(one.email) for one in known}
        new = [(email, name) for email, name in past if email_key(email) not in keys and not is_erased(email)]
        saved = await _apply(
            transaction, vault, [ContactChange(email=email, name=name) for email, name in new], "email"
        )
        if saved.created:
            await transaction.record("contacts.imported", "contacts", after={"created": saved.created})
    return saved


def address_context(customer_id: int, contact_id: int) -> bytes:
    """Returns the context to which an encrypted postal address of a contact is bound."""
    return f"contact/{customer_id}/{contact_id}".encode()


def open_address(vault: Vault, customer_id: int, contact_id: int, sealed: bytes | None) -> str | None:
    """Returns the postal address of a contact. Raises DecryptionFailed."""
    if sealed is None:
        return None
    return vault.addresses.open(sealed, address_context(customer_id, contact_id)).decode()


async def _apply_one(
    transaction: Transaction, vault: Vault, change: ContactChange, before: Contact | None = None
) -> Saved:
    """Applies one change, to an existing contact or a new one. Raises ContactFault."""
    try:
        return await _apply(transaction, vault, [change], "email", before)
    except ContactFaults as faults:
        raise faults.faults[0] from None


async def _apply(
    transaction: Transaction,
    vault: Vault,
    changes: Sequence[ContactChange],
    key: Key,
    before: Contact | None = None,
    faults: Mapping[int, InvalidRequest] = _NO_FAULTS,
) -> Saved:
    """Writes changes. A change of the existing contact `before` may give it another address. Raises ContactFaults, also with `faults`."""
    if len(changes) > MOST_AT_ONCE:
        raise InvalidRequest(f"`contacts` must have at most {MOST_AT_ONCE:,} elements, not {len(changes):,}.")
    connection, place = transaction.connection, transaction.actor.place
    own = [field.key for field in await list_fields(connection, place)]
    found = dict(faults)
    checked = [_checked(change, own, at, found) for at, change in enumerate(changes)]
    known = _Known(
        await store.find_contacts(
            connection,
            place,
            emails=[one.email for one in checked if one.email is not UNSET],
            external_ids=[one.external_id for one in checked if isinstance(one.external_id, str)],
            ids=() if before is None else [before.id],
        )
    )
    targets = known.take(checked, key, before, found)
    if found:
        raise ContactFaults(dict(sorted(found.items())))
    return await _write(transaction, vault, checked, known, targets)


def _checked(change: ContactChange, own: Collection[str], at: int, faults: dict[int, InvalidRequest]) -> ContactChange:
    try:
        return checked_change(change, own)
    except ContactFault as fault:
        faults[at] = fault
        return ContactChange()


class _Known:
    """The contacts of a call's changes, with the changes made so far. New contacts have negative ids."""

    def __init__(self, found: Iterable[Contact]) -> None:
        self.before = {one.id: one for one in found}
        self.now = dict(self.before)
        self._named: set[int] = set()  # contacts that a change has named by external id
        self._index()

    def take(
        self, changes: Sequence[ContactChange], key: Key, before: Contact | None, faults: dict[int, InvalidRequest]
    ) -> list[Contact]:
        """Returns the contact of each change, with the change made. Adds faults to `faults`.

        Changes that name a contact by its external id come first, as they may free the addresses of others.
        """
        targets = [_NOBODY] * len(changes)
        names = [key == "external_id" and one.external_id in self._by_external for one in changes]
        for is_named in (True, False):
            for at, change in enumerate(changes):
                if names[at] is not is_named or (before is None and change == ContactChange()):  # `faults` has it
                    continue
                try:
                    targets[at] = self._take(change, key, before)
                except ContactFault as fault:
                    faults.setdefault(at, fault)
            self._index()
        self._check(targets, faults)
        return targets

    def _index(self) -> None:
        self._by_email = {email_key(one.email): one.id for one in self.now.values()}
        self._by_external = {one.external_id: one.id for one in self.now.values() if one.external_id is not None}

    def _take(self, change: ContactChange, key: Key, before: Contact | None) -> Contact:
        one = self._find(change, key, before)
        if one is None:
            if change.email is UNSET:
                raise ContactFault("email", "email_missing")
            one = replace(_NOBODY, id=-1 - len(self.now), email=change.email)
        elif one.id in self._named and change.email is not UNSET and email_key(change.email) != email_key(one.email):
            raise ContactFault("external_id", "external_id_taken")  # another change of the call has it
        changed = _changed(one, change)
        self.now[one.id] = changed
        self._by_email[email_key(changed.email)] = one.id
        if changed.external_id is not None:
            self._by_external[changed.external_id] = one.id
            if key == "external_id":
                self._named.add(one.id)
        return changed

    def _find(self, change: ContactChange, key: Key, before: Contact | None) -> Contact | None:
        if before is not None:
            return self.now[before.id]
        if key == "external_id" and isinstance(change.external_id, str):
            found = self._by_external.get(change.external_id)
            if found is not None:
                return self.now[found]
        found = None if change.email is UNSET else self._by_email.get(email_key(change.email))
        return None if found is None or found in self._named else self.now[found]

    def _check(self, targets: Sequence[Contact], faults: dict[int, InvalidRequest]) -> None:
        """Adds a fault for each change that gives a contact the address or the external id of another."""
        ids = {one.id for one in targets}
        others = [one for one in self.now.values() if one.id not in ids]
        emails = {email_key(one.email): one.id for one in others}
        external = {one.external_id: one.id for one in others if one.external_id is not None}
        for at, target in enumerate(targets):
            if target is _NOBODY:
                continue
            one = self.now[target.id]
            if emails.setdefault(email_key(one.email), one.id) != one.id:
                faults.setdefault(at, ContactFault("email", "email_taken"))
            elif one.external_id is not None and external.setdefault(one.external_id, one.id) != one.id:
                faults.setdefault(at, ContactFault("external_id", "external_id_taken"))


_NOBODY = Contact(id=0, email="", name="")


def _changed(one: Contact, change: ContactChange) -> Contact:
    """Returns a contact with a change made. Raises ContactFault for too many groups."""
    said = {
        name: value
        for name in ("email", "language", "country", "birthday", "start_date", "external_id", "is_active")
        if (value := getattr(change, name)) is not UNSET
    }
    if change.name is not UNSET:
        said["name"] = change.name or ""
    fields = {**one.own_fields, **change.fields}
    groups = {group_key(name): name for name in (one.groups if change.groups is UNSET else change.groups)}
    for name in change.more_groups:
        groups.setdefault(group_key(name), name)
    if len(groups) > MOST_GROUPS_EACH:
        raise ContactFault("groups", "groups_many")
    kept = {key: value for key, value in fields.items() if value is not None}
    return replace(one, **said, own_fields=kept, groups=tuple(groups.values()))


async def _write(
    transaction: Transaction, vault: Vault, changes: Sequence[ContactChange], known: _Known, targets: Sequence[Contact]
) -> Saved:
    connection, place = transaction.connection, transaction.actor.place
    new = [one for id_, one in known.now.items() if id_ < 0]
    changed = [one for id_, one in known.now.items() if id_ > 0 and one != known.before[id_]]
    if new and await store.count_all(connection, place) + len(new) > MOST_CONTACTS:
        raise TooManyContacts
    await store.free_keys(connection, place, [one.id for one in changed if _has_other_keys(one, known.before[one.id])])
    await store.update_contacts(connection, place, changed)
    made = await store.insert_contacts(connection, place, new)
    ids = {id_: made[email_key(one.email)] if id_ < 0 else id_ for id_, one in known.now.items()}
    await _save_groups(transaction, known, ids)
    addresses: dict[int, bytes | None] = {}
    for change, one in zip(changes, targets, strict=True):
        if change.address is not UNSET and (change.address is not None or one.has_address):
            context = address_context(place[0], ids[one.id])
            text = change.address
            addresses[ids[one.id]] = None if text is None else vault.addresses.seal(text.encode(), context)
    await store.save_addresses(connection, place, addresses)
    touched = {one.id for one in changed} | (addresses.keys() - set(made.values()))
    return Saved(tuple(ids[one.id] for one in targets), len(new), len(touched))


def _has_other_keys(one: Contact, before: Contact) -> bool:
    return email_key(one.email) != email_key(before.email) or one.external_id != before.external_id


async def _save_groups(transaction: Transaction, known: _Known, ids: Mapping[int, int]) -> None:
    connection, place = transaction.connection, transaction.actor.place
    joins: list[tuple[str, str, int]] = []
    leaves: list[tuple[str, int]] = []
    for id_, one in known.now.items():
        before = {group_key(name) for name in known.before[id_].groups} if id_ > 0 else set()
        now = {group_key(name): name for name in one.groups}
        joins += [(key, name, ids[id_]) for key, name in now.items() if key not in before]
        leaves += [(key, ids[id_]) for key in before - now.keys()]
    if not (joins or leaves):
        return
    groups = await group_ids(connection, place)
    missing = {key: name for key, name, _ in joins if key not in groups}
    if missing and len(groups) + len(missing) > MOST_GROUPS:
        raise TooManyGroups
    groups |= await insert_groups(connection, place, list(missing.values()))
    await save_members(
        connection, place, [(groups[key], id_) for key, _, id_ in joins], [(groups[key], id_) for key, id_ in leaves]
    )
