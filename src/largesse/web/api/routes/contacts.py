"""GET, POST, PATCH and DELETE /contacts, and POST /contacts/bulk."""

from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from largesse.base.decoding import MONTH_AND_DAY, WrongItem, decode_body, decode_part, refused
from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.languages import LANGUAGES
from largesse.contacts import model
from largesse.contacts.model import Contact, ContactChange
from largesse.contacts.service import change_contact, create_contact, open_address, remove_contacts, save_contacts
from largesse.contacts.store import Filter, list_by_id, read_contact, read_sealed_address
from largesse.customers.restrictions import CONTACTS
from largesse.web.api.operation import ID_IN_PATH, Call, Operation
from largesse.web.api.shapes import shaped
from largesse.web.kit.asgi import Reply, encode_json
from largesse.web.kit.query import INT32
from largesse.web.kit.services import Services

_MOST_AT_ONCE = 1_000
_Email = Annotated[
    str, Meta(max_length=254, description="Unique, letter case ignored", extra_json_schema={"format": "email"})
]
_Name = Annotated[
    str, Meta(max_length=model.MAX_NAME, description="Full name, used to address gifts", examples=["Sam Okoye"])
]
_Language = Annotated[str, Meta(description="Tag of a language", extra_json_schema={"enum": list(LANGUAGES)})]
_Country = Annotated[
    str,
    Meta(pattern="^[A-Za-z]{2}$", max_length=2, description="ISO 3166-1 alpha-2, letter case ignored", examples=["GB"]),
]
_Birthday = Annotated[
    str,
    Meta(
        pattern=MONTH_AND_DAY,
        description="Month and day, without the year",
        examples=["03-14"],
        extra_json_schema={"maxLength": 5},
    ),
]
_Address = Annotated[str, Meta(max_length=model.MAX_ADDRESS, description="Postal address; stored encrypted")]
_ExternalId = Annotated[
    str, Meta(max_length=model.MAX_EXTERNAL_ID, description="Your own id, unique", examples=["employee-1138"])
]
_Groups = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=model.MAX_GROUP)]],
    Meta(
        max_length=model.MOST_GROUPS_EACH,
        description="Names of all groups; a new name creates a group, and null counts as left out",
        examples=[["Sales"]],
    ),
]
_Fields = Annotated[
    dict[Annotated[str, Meta(max_length=model.MAX_KEY)], Annotated[str, Meta(max_length=model.MAX_FIELD)] | None],
    Meta(
        max_length=model.MOST_FIELDS,
        description="Values of your own fields by key; those left out stay, null removes one",
    ),
]


class _Members(msgspec.Struct, kw_only=True, rename="camel"):
    """The members of a contact besides its e-mail address. A member left out keeps its value; null removes the value. For `groups`, null counts as left out."""

    name: _Name | UnsetType | None = UNSET
    language: _Language | UnsetType | None = UNSET
    country: _Country | UnsetType | None = UNSET
    birthday: _Birthday | UnsetType | None = UNSET
    start_date: Annotated[date, Meta(description="First day at work")] | UnsetType | None = UNSET
    address: _Address | UnsetType | None = UNSET
    external_id: _ExternalId | UnsetType | None = UNSET
    active: Annotated[bool, Meta(description="False for somebody who left: they get no gifts")] | UnsetType = UNSET
    # Nullable: openapi-generator's Java clients send an empty list for a list that is left out and cannot be null.
    groups: _Groups | UnsetType | None = UNSET
    fields: _Fields | UnsetType = UNSET


class NewContact(_Members, kw_only=True, rename="camel"):
    """Body of POST /contacts."""

    email: _Email


class ChangedContact(_Members, kw_only=True, rename="camel"):
    """Body of PATCH /contacts/{id}."""

    email: _Email | UnsetType = UNSET


class BulkContact(_Members, kw_only=True, rename="camel"):
    """One contact of POST /contacts/bulk."""

    email: _Email
    external_id: Annotated[_ExternalId, Meta(extra_json_schema={"minLength": 1, "pattern": r"\S"})]


class BulkContacts(msgspec.Struct, rename="camel"):
    """Body of POST /contacts/bulk."""

    contacts: Annotated[
        list[BulkContact],
        Meta(min_length=1, max_length=_MOST_AT_ONCE, description="Contacts to create or change, each once"),
    ]


class _ContactsOnly(msgspec.Struct):
    """The undecoded contacts of a body that may be wrong elsewhere."""

    contacts: list[msgspec.Raw]


_BULK_CONTACT = msgspec.json.Decoder(BulkContact)


class ContactShape(msgspec.Struct, kw_only=True, rename="camel"):
    """A contact."""

    id: Annotated[int, Meta(description="Unique; ascends")]
    email: Annotated[str, Meta(description="E-mail address that gifts go to")]
    name: Annotated[str, Meta(description="Full name; empty if there is none")]
    language: (
        Annotated[str, Meta(description="Tag of the language of mail; null for that of the gift's country")] | None
    )
    country: Annotated[str, Meta(description="ISO 3166-1 alpha-2")] | None
    birthday: Annotated[str, Meta(description="Month and day", examples=["03-14"])] | None
    start_date: Annotated[date, Meta(description="First day at work")] | None
    external_id: Annotated[str, Meta(description="Your own id")] | None
    active: Annotated[bool, Meta(description="False for somebody who left: they get no gifts")]
    groups: Annotated[list[str], Meta(description="Names, in order")]
    fields: Annotated[dict[str, str], Meta(description="Values of your own fields by key")]
    address: Annotated[str, Meta(description="Postal address; left out of lists")] | UnsetType | None = UNSET


class SavedContacts(msgspec.Struct, rename="camel"):
    """The result of a bulk call."""

    created: Annotated[int, Meta(description="How many contacts are new")]
    changed: Annotated[int, Meta(description="How many contacts existed, and have other values now")]
    ids: Annotated[list[int], Meta(description="Of the contacts, in the order of the request")]


class ContactsQuery(msgspec.Struct, frozen=True):
    """Which contacts to list, in the order of their ids."""

    q: Annotated[str, Meta(max_length=200, description="Words that the name or the address contains")] = ""
    group: Annotated[int, Meta(ge=1, le=INT32, description="Id of a group")] | None = None
    active: Annotated[bool, Meta(description="Only active contacts, or only those who left")] | None = None
    after: Annotated[int, Meta(ge=0, le=INT32, description="The last id you have; gives those after it")] = 0
    limit: Annotated[int, Meta(ge=1, le=200, description="Contacts to return at most")] = 100


async def _contacts(services: Services, call: Call) -> Reply:
    query, principal = call.query, call.principal
    place = principal.place
    shown = Filter(query.q, query.active, query.group)
    async with services.database.connection(principal.scope) as connection:
        listed = await list_by_id(connection, place, shown, query.limit, query.after)
    return Reply(encode_json([_shape(one) for one in listed]))


async def _one(services: Services, call: Call) -> Reply:
    return Reply(encode_json(await _read(services, call, call.id())))


async def _create(services: Services, call: Call) -> Reply:
    body = call.read(NewContact)
    contact_id = await create_contact(call.actor(services), services.vault, _change(body, email=body.email))
    return Reply(encode_json(await _read(services, call, contact_id)), 201)


async def _patch(services: Services, call: Call) -> Reply:
    body, contact_id = call.read(ChangedContact), call.id()
    await change_contact(call.actor(services), services.vault, contact_id, _change(body, email=body.email))
    return Reply(encode_json(await _read(services, call, contact_id)))


async def _delete(services: Services, call: Call) -> Reply:
    await remove_contacts(call.actor(services), [call.id()])
    return Reply(b"", 204)


async def _bulk(services: Services, call: Call) -> Reply:
    faults: dict[int, InvalidRequest] = {}
    try:
        contacts: Sequence[BulkContact | None] = call.read(BulkContacts).contacts
    except WrongItem:  # names only the first wrong contact
        contacts = _read_each(call.body, faults)
        if not faults:
            raise
    faults |= {
        at: refused(f"contacts[{at}].externalId", "must not be blank")
        for at, one in enumerate(contacts)
        if one is not None and not one.external_id.strip()
    }
    changes = [
        ContactChange() if one is None or at in faults else _change(one, email=one.email)
        for at, one in enumerate(contacts)
    ]
    saved = await save_contacts(call.actor(services), services.vault, changes, key="external_id", faults=faults)
    return Reply(encode_json(SavedContacts(saved.created, saved.changed, list(saved.ids))))


def _read_each(raw: bytes, faults: dict[int, InvalidRequest]) -> list[BulkContact | None]:
    """Returns the contacts of a body, with None for each that cannot be decoded; adds what is wrong with it to `faults`."""
    contacts: list[BulkContact | None] = []
    for at, one in enumerate(decode_body(raw, _ContactsOnly).contacts[:_MOST_AT_ONCE]):
        try:
            contacts.append(decode_part(one, _BULK_CONTACT, f"contacts[{at}]"))
        except InvalidRequest as refusal:
            faults[at] = refusal
            contacts.append(None)
    return contacts


def _change(body: _Members, *, email: str | UnsetType) -> ContactChange:
    """Returns the change that a body describes. Its values are not checked yet."""
    birthday: Any = body.birthday
    if isinstance(birthday, str):
        month, _, day = birthday.partition("-")
        # The pattern allows a line break at the end, as `$` does in Python. `isdigit` refuses it.
        birthday = int(month) * 100 + int(day) if day.isdigit() else 0
    return shaped(
        ContactChange,
        body,
        email=email,
        birthday=birthday,
        is_active=body.active,
        groups=UNSET if body.groups is UNSET or body.groups is None else tuple(body.groups),
        more_groups=(),
        fields={} if body.fields is UNSET else body.fields,
    )


async def _read(services: Services, call: Call, contact_id: int) -> ContactShape:
    """Returns a contact of the caller with its postal address. Raises NotFound."""
    principal = call.principal
    place = principal.place
    async with services.database.connection(principal.scope) as connection:
        found = await read_contact(connection, place, contact_id)
        sealed = await read_sealed_address(connection, place, contact_id)
    shape = _shape(found)
    shape.address = open_address(services.vault, principal.customer_id, contact_id, sealed)
    return shape


def _shape(contact: Contact) -> ContactShape:
    return shaped(
        ContactShape,
        contact,
        birthday=None if contact.birthday is None else model.written_birthday(contact.birthday),
        active=contact.is_active,
        groups=list(contact.groups),
        fields=dict(contact.own_fields),
        address=UNSET,
    )


_EXAMPLE: dict[str, Any] = {
    "id": 1,
    "email": "sam@example.com",
    "name": "Sam Okoye",
    "language": "en",
    "country": "GB",
    "birthday": "03-14",
    "startDate": "2024-03-01",
    "externalId": "employee-1138",
    "active": True,
    "groups": ["Sales"],
    "fields": {},
}
_NEW_EXAMPLE = {
    "email": "sam@example.com",
    "name": "Sam Okoye",
    "birthday": "03-14",
    "externalId": "employee-1138",
    "groups": ["Sales"],
}

_operation = partial(Operation, tag="Contacts", scope=CONTACTS)
OPERATIONS = (
    _operation(
        "GET",
        "/contacts",
        "listContacts",
        "List contacts",
        _contacts,
        description="The contacts of the customer in the key's environment, without postal addresses.",
        shape=list[ContactShape],
        query=ContactsQuery,
        example=[_EXAMPLE],
    ),
    _operation(
        "POST",
        "/contacts",
        "createContact",
        "Create a contact",
        _create,
        status=201,
        description="An `email` or `externalId` that another contact has is 400.",
        shape=ContactShape,
        example={**_EXAMPLE, "address": None},
        body=NewContact,
        body_examples={"contact": _NEW_EXAMPLE},
    ),
    _operation(
        "POST",
        "/contacts/bulk",
        "saveContacts",
        "Create or change several contacts",
        _bulk,
        description="Each is found by its `externalId`, otherwise by its `email`, and created if there is none. All are saved, or none: "
        "`errors` says what is wrong with each, the first 100.",
        shape=SavedContacts,
        example={"created": 1, "changed": 0, "ids": [1]},
        body=BulkContacts,
        body_examples={"contacts": {"contacts": [_NEW_EXAMPLE]}},
    ),
    _operation(
        "GET",
        "/contacts/{id}",
        "getContact",
        "Get a contact",
        _one,
        description="Includes the postal address.",
        shape=ContactShape,
        path_types=ID_IN_PATH,
        problems=(NotFound,),
        example={**_EXAMPLE, "address": "1 High Street\nLeeds\nLS1 1AA"},
    ),
    _operation(
        "PATCH",
        "/contacts/{id}",
        "changeContact",
        "Change a contact",
        _patch,
        description="Members that you leave out stay as they are. Null removes a value.",
        shape=ContactShape,
        path_types=ID_IN_PATH,
        problems=(NotFound,),
        example={**_EXAMPLE, "address": None},
        body=ChangedContact,
        body_examples={"change": {"groups": ["Sales"]}},
    ),
    _operation(
        "DELETE",
        "/contacts/{id}",
        "deleteContact",
        "Delete a contact",
        _delete,
        description="Deletes it for good. Gifts that were sent stay as they are.",
        status=204,
        path_types=ID_IN_PATH,
        problems=(NotFound,),
    ),
)
