"""GET /me and GET /users."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from largesse.base.batching import Receiver
from largesse.customers.members import User, list_users
from largesse.customers.restrictions import READ
from largesse.customers.roles import ROLES
from largesse.web.api.operation import Call, Operation
from largesse.web.api.reading import PagingNewestFirst
from largesse.web.api.shapes import shaped
from largesse.web.kit.replies import Reply, encode_json
from largesse.web.kit.services import Services

Int64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]


class Identity(msgspec.Struct, rename="camel"):
    """The customer and the service account that the key acts for."""

    customer_id: Int64
    customer_name: str
    service_account_id: Int64
    service_account_name: str
    environment: Annotated[str, Meta(extra_json_schema={"enum": ["production", "staging"]})]


class UserShape(msgspec.Struct, rename="camel"):
    """A person on the customer's account."""

    id: int
    name: str
    email: str
    role: Annotated[
        str, Meta(description="Later releases may add some", extra_json_schema={"x-extensible-enum": list(ROLES)})
    ]
    is_active: bool
    creation_date: Annotated[datetime, Meta(tz=True)]
    last_login_date: Annotated[datetime, Meta(tz=True)] | None
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
)
