"""Operations on mail: send the mail of recipients again, correct an address, send a test, and requeue what was given up."""

from largesse.customers.actor import Actor
from largesse.customers.roles import Right
from largesse.customers.staff_roles import StaffRight
from largesse.encryption.vault import Vault
from largesse.jobs.outbox import mail_users
from largesse.mail import resending
from largesse.mail.mailbox import capture
from largesse.mail.recipients import RecipientDelivery


async def resend_mail(actor: Actor, reference: str, email: str, seen: int | None = None) -> RecipientDelivery:
    """Sends the mail of the recipient at `email` once more. Raises as `resending.resend` does."""
    async with actor.transaction(Right.SEND, StaffRight.DELIVERIES) as transaction:
        address = actor.acting.who.address
        recipient = await resending.resend(
            transaction.connection, actor.principal, reference, email, seen=seen, address=address
        )
        # `order_acts` has the message: the audit log keeps no recipient's address.
        await transaction.record("order.resent", f"order {reference}")
    return recipient


async def resend_unclaimed(actor: Actor, reference: str) -> int:
    """Sends the mail of every recipient who has claimed nothing once more. Returns how many. Raises as `resending.resend_unclaimed` does."""
    async with actor.transaction(Right.SEND) as transaction:
        address = actor.acting.who.address
        count = await resending.resend_unclaimed(transaction.connection, actor.principal, reference, address=address)
        if count:
            await transaction.record("order.resent", f"order {reference}", after={"recipients": count})
    return count


async def correct_address(actor: Actor, reference: str, email: str, corrected: str) -> None:
    """Corrects the address of the recipient at `email`, and sends the mail there. Raises as `resending.correct_address` does."""
    async with actor.transaction(Right.SEND, StaffRight.DELIVERIES) as transaction:
        address = actor.acting.who.address
        await resending.correct_address(
            transaction.connection, transaction.entries, actor.principal, reference, email, corrected, address=address
        )
        await transaction.record("order.readdressed", f"order {reference}")


async def send_test_mail(
    actor: Actor, vault: Vault, written: bytes, *, recipient: str, subject: str, is_captured: bool
) -> None:
    """Mails a written test to the person themselves, or stores it in the test mailbox if it `is_captured`."""
    principal = actor.principal
    assert principal.user_id is not None, "people send tests"
    async with actor.transaction(Right.SEND) as transaction:
        if not is_captured:
            await mail_users(transaction.connection, "test", [principal.user_id], content=written)
            return
        await capture(
            transaction.connection,
            vault,
            customer_id=principal.customer_id,
            environment=principal.environment,
            recipient=recipient,
            subject=subject,
            written=written,
        )
