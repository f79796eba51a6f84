"""Requests about personal data. Each has a deadline, and ends with an export or an erasure.

The law allows a month (GDPR, article 12 (3)). The address is encrypted until the request is done, and erased then.
"""

import asyncio
from contextlib import suppress
from datetime import date
from enum import StrEnum

from largesse.base.email import masked
from largesse.base.errors import InvalidRequest, StateConflict
from largesse.customers.actor import Actor
from largesse.customers.customer_store import read_customer
from largesse.customers.staff_roles import StaffRight
from largesse.encryption.vault import Vault
from largesse.privacy import store
from largesse.privacy.erasing import begin, carry_out
from largesse.privacy.service import export
from largesse.privacy.store import Json, PrivacyRequest, Receipt

MOST_OPEN = 1_000
EARLIEST_DAYS = 90  # how many days ago a request may have arrived when it is entered
SOON_DAYS = 7


class Kind(StrEnum):
    """The kind of a request."""

    EXPORT = "export"
    ERASE = "erase"


class Outcome(StrEnum):
    """How a request ended without an erasure."""

    DONE = "done"
    NOTHING = "nothing"  # nothing is stored about the address
    DECLINED = "declined"


def request_context(request_id: int) -> bytes:
    """Returns the encryption context of the address of a request."""
    return b"privacy-request/" + str(request_id).encode()


def open_email(vault: Vault, request: PrivacyRequest) -> str:
    """Returns the address of an open request. Raises StateConflict once it is done."""
    if request.sealed_email is None:
        raise StateConflict("The request is done, and its address was erased.")
    return vault.emails.open(request.sealed_email, request_context(request.id)).decode()


def shown_email(vault: Vault, request: PrivacyRequest) -> str | None:
    """Returns the masked address of an open request; None once it is done."""
    return None if request.sealed_email is None else masked(open_email(vault, request))


async def receive(
    actor: Actor, vault: Vault, kind: Kind, email: str, received_on: date, customer_id: int | None = None
) -> int:
    """Stores a request about an address in its normal form, of one customer or all. Returns its id.

    Raises InvalidRequest for a day in the future or too long ago, and if there are too many requests, and NotFound for an unknown customer.
    """
    async with actor.transaction(StaffRight.PRIVACY) as transaction:
        connection = transaction.connection
        today = await store.read_today(connection)
        if not 0 <= (today - received_on).days <= EARLIEST_DAYS:
            raise InvalidRequest(f"The day must be today, or one of the last {EARLIEST_DAYS}.")
        if await connection.fetchval(store.COUNT_OPEN) >= MOST_OPEN:
            raise InvalidRequest(f"At most {MOST_OPEN} requests are open: finish some first.")
        if customer_id is not None:
            await read_customer(connection, customer_id)
        request_id: int = await connection.fetchval(store.NEXT_REQUEST_ID)
        sealed = vault.emails.seal(email.encode(), request_context(request_id))
        await store.add_request(connection, request_id, kind, customer_id, sealed, received_on)
        after = {"kind": kind, "received_on": received_on}
        await transaction.record("privacy_request.received", f"privacy request {request_id}", after=after)
    return request_id


async def export_for(actor: Actor, vault: Vault, request: PrivacyRequest) -> Json:
    """Returns everything stored about the address of an open request. Raises NotFound if there is nothing, and StateConflict once it is done."""
    return await export(actor, vault, open_email(vault, request), request.customer_id)


async def erase_for(
    actor: Actor, vault: Vault, request: PrivacyRequest, within_s: float | None = None
) -> Receipt | None:
    """Erases the address of an open request everywhere, finishes the request, and returns the receipt.

    Returns None if that is not over within so many seconds: workers then carry it on.

    Raises NotFound if nothing is stored, StateConflict once it is done, and InvalidRequest for a request that asks for an export.
    """
    if request.kind != Kind.ERASE:
        raise InvalidRequest("The request asks for an export.")
    job_id = await begin(actor, vault, open_email(vault, request), request.customer_id, request_id=request.id)
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            return await carry_out(actor, vault, job_id)
    return None


async def finish(actor: Actor, request_id: int, outcome: Outcome) -> None:
    """Marks an open request as done without an erasure, and erases its address. Raises NotFound, and StateConflict once it is done."""
    async with actor.transaction(StaffRight.PRIVACY) as transaction:
        connection = transaction.connection
        found = await store.find_request(connection, request_id)
        if found.kind == Kind.ERASE and outcome is Outcome.DONE:
            raise InvalidRequest("Erase the data to finish this request, or choose another result.")
        if not await store.finish_request(connection, request_id, outcome):
            raise StateConflict("The request is done already.")
        await transaction.record("privacy_request.done", f"privacy request {request_id}", after={"outcome": outcome})
