"""GET /me, GET /users and GET /health."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from largesse import __version__
from largesse.base.batching import Receiver
from largesse.customers.members import User, list_users
from largesse.customers.restrictions import READ
from largesse.customers.roles import ROLES
from largesse.db.pool import DATABASE_AWAY
from largesse.orders.ids import FEW_IDS, read_capacity
from largesse.web.api.operation import Call, Operation
from largesse.web.api.reading import PagingNewestFirst
from largesse.web.api.shapes import shaped
from largesse.web.kit.asgi import Reply, encode_json
from largesse.web.kit.services import Services

_INT64 = {"format": "int64"}


class Identity(msgspec.Struct, rename="camel"):
    """The customer and the service account that the key acts for."""

    customer_id: Annotated[int, Meta(description="The customer's id", extra_json_schema=_INT64)]
    customer_name: Annotated[str, Meta(description="The customer's name")]
    service_account_id: Annotated[
        int, Meta(description="The service account's id: `createdBy` of its orders", extra_json_schema=_INT64)
    ]
    service_account_name: Annotated[str, Meta(description="The service account's name")]
    environment: Annotated[
        str,
        Meta(
            description="Environment of the key; `staging` is the sandbox, whose mail is captured and not sent",
            extra_json_schema={"enum": ["production", "staging"]},
        ),
    ]


class UserShape(msgspec.Struct, rename="camel"):
    """A person on the customer's account."""

    id: Annotated[int, Meta(description="The person's id on this account")]
    name: Annotated[str, Meta(description="Full name")]
    email: Annotated[str, Meta(description="E-mail address that they sign in with")]
    role: Annotated[
        str, Meta(description="Later releases may add some", extra_json_schema={"x-extensible-enum": list(ROLES)})
    ]
    is_active: Annotated[bool, Meta(description="Whether they may sign in")]
    creation_date: Annotated[datetime, Meta(tz=True, description="When they were invited")]
    last_login_date: Annotated[datetime, Meta(tz=True, description="When they last signed in; null for never")] | None
    label: Annotated[str, Meta(description="Display label")]


async def _me(_: Services, call: Call) -> Reply:
    return Reply(encode_json(shaped(Identity, call.principal)))


def _me_at_once(_: Services, call: Call, __: Receiver[bytes]) -> Reply:
    return Reply(encode_json(shaped(Identity, call.principal)))


async def _users(services: Services, call: Call) -> Reply:
    async with services.database.connection(call.principal.scope) as connection:
        users = await list_users(connection, call.principal, **asdict(call.query))
    return Reply(encode_json([_shape(user) for user in users]))


def _shape(user: User) -> UserShape:
    return shaped(
        UserShape,
        user,
        creation_date=user.created_at,
        last_login_date=user.last_login_at,
        label=f"{user.name} <{user.email}>",
    )


class Health(msgspec.Struct, omit_defaults=True):
    """Whether the service can work."""

    status: Annotated[str, Meta(description="`pass`, `warn` or `fail`", examples=["pass"])]
    version: Annotated[str, Meta(description="Version of the service", examples=["0.2.0"])] | None = None
    notes: Annotated[list[str], Meta(description="The reasons, unless `status` is `pass`")] = []


async def _health(services: Services, call: Call) -> Reply:
    try:
        ids_left, takes_writes = await read_capacity(services.database)
    except DATABASE_AWAY:
        return Reply(encode_json(Health("fail")), 503, headers=(("retry-after", "1"),))
    if services.database.disk.is_full:
        said = "The disk of the database is full: nothing can be written."
        return Reply(encode_json(Health("fail", __version__, [said])), 503, headers=(("retry-after", "10"),))
    if ids_left <= 0:
        said = "The ids of orders are used up: no order can be placed any more."
        return Reply(encode_json(Health("fail", __version__, [said])), 503)
    if not takes_writes:
        said = "The database is a standby or read-only: no order can be placed here."
        return Reply(encode_json(Health("warn", __version__, [said])))
    if ids_left < FEW_IDS:
        said = f"Ids for {ids_left:,} more orders are left, fewer than a tenth."
        return Reply(encode_json(Health("warn", __version__, [said])))
    return Reply(encode_json(Health("pass", __version__)))


OPERATIONS = (
    Operation(
        "GET",
        "/me",
        "getMe",
        "Get the identity of the key",
        _me,
        "Identity",
        at_once=_me_at_once,
        shape=Identity,
        example={
            "customerId": 1,
            "customerName": "Acme Ltd",
            "serviceAccountId": 1,
            "serviceAccountName": "HR bot",
            "environment": "production",
        },
        description="Returns the customer, service account and environment of the key. It is the only operation that works while the service account is switched off.",
        needs_active=False,
    ),
    Operation(
        "GET",
        "/users",
        "listUsers",
        "List the people on the account",
        _users,
        "Identity",
        scope=READ,
        description="The people of the customer, newest first.",
        shape=list[UserShape],
        query=PagingNewestFirst,
        example=[
            {
                "id": 1,
                "name": "Ada",
                "email": "ada@acme.example",
                "role": "admin",
                "isActive": True,
                "creationDate": "2030-01-02T09:00:00Z",
                "lastLoginDate": None,
                "label": "Ada <ada@acme.example>",
            }
        ],
    ),
    Operation(
        "GET",
        "/health",
        "getHealth",
        "Check whether the service works",
        _health,
        "Service",
        shape=Health,
        example={"status": "pass", "version": __version__},
        description='Needs no key. 503 with `{"status": "fail"}` while the service cannot work; if the cause is known, such as a full disk, `notes` says it. With `warn`, `notes` says '
        "what the operator must do; reading works.",
        also={503: {"status": "fail"}},
        needs_key=False,
    ),
)
