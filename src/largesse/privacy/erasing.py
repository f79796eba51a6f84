"""Erases a person: a job of many steps, each a transaction that locks the job, erases a part and counts it.

So nothing is erased or counted twice, even if a command, a request of the back office and workers take steps at the same time. Workers carry on
what was interrupted. The last step writes the receipt and the audit entry, with the counts of all steps.
"""

from collections.abc import Callable

from msgspec.structs import replace

from largesse.approvals.store import erase_decisions_mentioning
from largesse.audit.service import Acting
from largesse.base.email import email_key
from largesse.base.errors import NotFound, StateConflict
from largesse.contacts.store import drop_contacts_with
from largesse.customers.actor import Actor, Transaction
from largesse.customers.customers import erase_notes_mentioning
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import commit_as_one
from largesse.drafts.store import drop_drafts_with
from largesse.encryption.vault import Vault
from largesse.lines.states import LineKey
from largesse.lines.tasks import erase_from_lifecycle, erase_from_messages, find_readdressed
from largesse.mail.tasks import ErasedMail, drop_copies, drop_copies_to, erase_from_reasons, erase_from_requeues
from largesse.orders.erasing import erase_mentions
from largesse.orders.marks import changing_orders
from largesse.privacy import erasing_store, service, store
from largesse.privacy.erasing_store import ErasureJob, FoundOrder
from largesse.privacy.service import ErasedOrder
from largesse.privacy.store import Receipt
from largesse.webhooks.tasks import erase_from_answers


def job_context(job_id: int) -> bytes:
    """Returns the encryption context of the address of a job."""
    return b"erasure-job/%d" % job_id


async def begin(
    actor: Actor, vault: Vault, email: str, customer_id: int | None = None, *, request_id: int | None = None
) -> int:
    """Begins to erase an address for one customer or all, and returns the id of the job. Workers carry it on.

    If an erasure for the same request runs, or one of the command line of the same address and customer, returns its id.
    """
    async with actor.transaction(StaffRight.PRIVACY) as transaction:
        connection = transaction.connection
        if request_id is None:
            for job in await erasing_store.list_running(connection, None):
                if job.customer_id == customer_id and email_key(_email(vault, job)) == email_key(email):
                    return job.id
        job_id = await erasing_store.next_job_id(connection)
        sealed = vault.emails.seal(email.encode(), job_context(job_id))
        who = actor.acting.who
        if await erasing_store.add_job(connection, job_id, customer_id, request_id, sealed, who):
            return job_id
        running = await erasing_store.list_running(connection, request_id)
    if not running:
        raise StateConflict("Somebody else carried out the request meanwhile.")
    return running[0].id


async def carry_out(
    actor: Actor, vault: Vault, job_id: int, show: Callable[[int, int], None] = lambda _done, _all: None
) -> Receipt:
    """Takes all steps of a job that are left, and returns its receipt. Raises NotFound if nothing is stored about the address.

    Calls `show` after each step with the orders that are erased and all that were found.
    """
    while not (job := await take_step(actor, vault, job_id)).has_ended:
        show(job.done, job.orders)
    if job.erasure_id is None:
        raise NotFound("nothing is held about that address as a recipient")
    async with actor.transaction(StaffRight.PRIVACY) as transaction:
        receipt = await store.find_receipt(transaction.connection, job.erasure_id)
    assert receipt is not None, "receipts are never deleted"
    return Receipt(**receipt)


async def take_step(actor: Actor, vault: Vault, job_id: int) -> ErasureJob:
    """Takes the next step of a job: searches for the address, erases it from one order, or ends the job. Returns the job as it is then.

    Does nothing once the job has ended. Waits while another process takes a step.
    """
    async with actor.transaction(StaffRight.PRIVACY) as transaction:
        connection = transaction.connection
        await commit_as_one(connection)
        await connection.execute(store.TAKE_TIME)
        job = await erasing_store.read_job(connection, job_id, lock=True)
        if job.has_ended:
            return job
        if not job.is_searched:
            await _search(transaction, vault, job)
        elif job.done < job.orders:
            found = await erasing_store.read_next(connection, job)
            erased = await _erase_order(transaction, found, _email(vault, job))
            await erasing_store.advance(connection, job.id, (erased.lines, *erased.mail, erased.parcels))
        else:
            await _end(transaction, job, _email(vault, job))
        return await erasing_store.read_job(connection, job.id)


def _email(vault: Vault, job: ErasureJob) -> str:
    assert job.sealed_email is not None, "it runs"
    return vault.emails.open(job.sealed_email, job_context(job.id)).decode()


async def _search(transaction: Transaction, vault: Vault, job: ErasureJob) -> None:
    """Stores where the address is, and erases it from the places that only this step searches. Ends the job if it is nowhere."""
    connection, email, customer_id = transaction.connection, _email(vault, job), job.customer_id
    found = await service.find(connection, vault, email, customer_id)
    copies = await drop_copies_to(connection, email, customer_id)
    erased = copies + await erase_from_lifecycle(connection, email, customer_id)
    erased += await erase_from_reasons(connection, email, customer_id)
    erased += await erase_from_answers(connection, email, customer_id)
    if customer_id is None:
        erased += await erase_from_requeues(connection, email)
    if not (found or erased):
        await erasing_store.end_job(connection, job.id, None)
        return
    mentions = set(found.mentions)
    orders = []
    for order in sorted({*found.lines, *mentions}):
        numbers = list(found.lines.get(order, ()))
        addressed = [one for one in numbers if LineKey(*order, one) in found.addressed]
        orders.append(FoundOrder(*order, numbers, addressed, order in mentions))
    await erasing_store.note_found(connection, job.id, orders, copies)


async def _erase_order(transaction: Transaction, found: FoundOrder, email: str) -> ErasedOrder:
    """Erases the address from an order: as a recipient, and from its texts."""
    connection, order = transaction.connection, (found.customer_id, found.order_id)
    erased, texts = ErasedOrder(0, ErasedMail(0, 0, 0), 0), None
    async with changing_orders(connection, transaction.entries, order[0], [order[1]], waits=True):
        # Somebody may have corrected the address since it was found. Then the line is another person's.
        others = await find_readdressed(connection, order, found.addressed, email)
        if theirs := [one for one in found.numbers if one not in others]:
            erased = await service.erase_lines(connection, order, theirs)
        if found.is_mention:
            texts = await erase_mentions(connection, order, email)
    if texts is None:
        return erased
    await service.forget_written(connection, order[0], texts)
    captured = erased.mail.captured + await drop_copies(connection, order)
    return replace(erased, mail=erased.mail._replace(captured=captured))


async def _end(transaction: Transaction, job: ErasureJob, email: str) -> None:
    """Erases the address from what belongs to no order, and adds the receipt and the audit entry. Finishes the request.

    Raises StateConflict if the request has a receipt already.
    """
    connection, customer_id = transaction.connection, job.customer_id
    await erase_from_messages(connection, email, customer_id)
    await erase_decisions_mentioning(connection, email, customer_id)
    mail = ErasedMail(job.messages, job.cancelled, job.captured)
    counts = service.count_erased(
        [ErasedOrder(job.lines, mail, job.parcels)],
        count=job.orders,
        texts=job.texts,
        drafts=await drop_drafts_with(connection, email, customer_id),
        contacts=await drop_contacts_with(connection, email, customer_id),
        campaigns=await service.forget_visitor(connection, email, customer_id),
        customer_notes=await erase_notes_mentioning(connection, email, customer_id),
    )
    receipt = await store.add_receipt(connection, counts, customer_id=customer_id)
    after = {"orders": receipt.orders, "lines": receipt.lines}
    if job.request_id is not None:
        after["request"] = job.request_id
        if not await store.finish_request(connection, job.request_id, "done", receipt.number):
            raise StateConflict("Somebody else carried out the request meanwhile.")
    await erasing_store.end_job(connection, job.id, receipt.number)
    # In the name of the person or command that began it, also if a worker takes the last step.
    acting = Acting(job.who, transaction.actor.acting.chains)
    await replace(transaction, actor=replace(transaction.actor, acting=acting)).record(
        "privacy.erased", f"erasure {receipt.number}", after=after
    )
