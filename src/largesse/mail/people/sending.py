"""Sends mail to people who sign in, one after the other, and retries what the mail server did not take."""

from email.utils import parseaddr

import msgspec
import structlog

from largesse.base import clock
from largesse.base.email import to_dial
from largesse.customers.sign_in_links import new_link
from largesse.db.pool import DATABASE_FAILED, Connection, Database, Row
from largesse.db.scope import WORKER
from largesse.db.statements import members_of
from largesse.encryption.vault import Vault
from largesse.jobs import metrics
from largesse.jobs.job_loop import Schedule
from largesse.jobs.outbox import mail_thank_you
from largesse.mail import store
from largesse.mail.away import MailServerAwayError
from largesse.mail.mailer import DRAIN_S
from largesse.mail.outcomes import Fault, fault_of
from largesse.mail.people import writing
from largesse.mail.smtp import SmtpTransport
from largesse.notes.service import MAIL_PAUSE_S
from largesse.notes.store import has_unmailed

SCHEDULE = Schedule(first_s=60.0, factor=4.0, cap_s=4 * 3600.0)
MOST_ATTEMPTS = 6

_log = structlog.get_logger(__name__)


class Tried(msgspec.Struct, frozen=True):
    """What became of an attempt: `sent`, `outdated`, `refused` for good, `again` if it must be tried again, `away` if the mail server is at fault, or `stopped` with the worker."""

    outcome: str
    stage: str | None = None
    code: int | None = None
    reason: str | None = None  # why, in our words


class PeopleMailer:
    """Sends due mail over one connection. `public_url` is the start of links."""

    def __init__(
        self, database: Database, vault: Vault, transport: SmtpTransport, *, public_url: str, mail_from: str
    ) -> None:
        self._database = database
        self._vault = vault
        self._transport = transport
        self._public_url = public_url
        self._mail_from = mail_from
        self._sender = to_dial(parseaddr(mail_from)[1])
        self._sending: Row | None = None
        self._draining = False

    async def step(self) -> bool:
        """Sends one due mail. Returns whether there was one. If the process dies meanwhile, the mail is sent again."""
        if self._draining:
            return False
        async with self._database.transaction(WORKER) as connection:
            row = await connection.fetchrow(store.TAKE_PEOPLE_MAILS)
            if row is not None:
                await _put_off(connection, row)
        if row is None:
            await self._transport.close()
            return False
        tried, self._sending = Tried("again"), row
        try:
            tried = await self._write_and_send(row)
        except DATABASE_FAILED:
            raise
        except Exception:  # noqa: BLE001 - logged; it must not stop the others
            _log.exception("people_mail.unreadable", id=row["id"], kind=row["kind"])
        finally:
            self._sending = None
        # Mail is given up after three days while the mail server cannot be reached, or refuses mail for a reason of its own.
        is_tried = row["attempts"] >= MOST_ATTEMPTS and (row["is_old"] or tried.outcome != "away")
        if tried.outcome == "stopped":
            await self._give_back(row)
        elif tried.outcome not in {"again", "away"} or is_tried:
            await self._end(row)
        _log.info(
            "people_mail", id=row["id"], kind=row["kind"], attempt=row["attempts"], **msgspec.structs.asdict(tried)
        )
        return True

    async def renew(self) -> bool:
        """Postpones the next attempt of the mail that is being sent, so that no other worker sends it too. Returns False: no work waits."""
        if self._sending is not None:
            async with self._database.transaction(WORKER) as connection:
                await _put_off(connection, self._sending)
        return False

    def drain(self) -> None:
        """Starts no more mail, and gives one back whose text is not sent yet. Waits for the answer to a text for a limited time."""
        self._draining = True
        self._transport.hurry(DRAIN_S)

    async def close(self) -> None:
        """Ends the connection to the mail server."""
        await self._transport.close()

    async def _end(self, row: Row) -> None:
        """Deletes a mail. Thank-you notes that came while it was sent get another one."""
        async with self._database.transaction(WORKER) as connection:
            # Waits for transactions that are adding notes.
            await connection.execute(store.DELETE_PEOPLE_MAIL, row["id"])
            if row["kind"] != "thank_you":
                return
            to = await connection.fetchrow(store.ADDRESSEE, row["user_id"], None)
            assert to is not None, "there is always one"
            notes = to["customer_id"], row["note_order_id"], row["user_id"]
            if not to["is_removed"] and await has_unmailed(connection, *notes):
                await mail_thank_you(connection, row["user_id"], row["note_order_id"], MAIL_PAUSE_S)

    async def _give_back(self, row: Row) -> None:
        """Lets another worker send a mail at once, as if it had not been tried."""
        async with self._database.transaction(WORKER) as connection:
            await connection.execute(store.RETRY_PEOPLE_MAIL, row["id"], row["attempts"] - 1, 0.0)

    async def _write_and_send(self, row: Row) -> Tried:
        async with self._database.transaction(WORKER) as connection:
            mail = await self._read(connection, row)
        return Tried("outdated") if mail is None else await self._send(mail)

    async def _read(self, connection: Connection, row: Row) -> writing.PeopleMail | None:
        """Returns the mail of a row, with a new link; None if it is no longer due, or the person was removed."""
        to = await connection.fetchrow(store.ADDRESSEE, row["user_id"], row["person_id"])
        assert to is not None, "there is always one"
        if to["is_removed"]:
            return None
        is_about = any(
            row[about] is not None for about in ("account_id", "request_id", "note_order_id", "automation_id")
        )
        about = await writing.read_about(connection, self._vault, row, to["customer_id"]) if is_about else None
        if is_about and about is None:
            return None
        members = members_of(writing.PeopleMail, row) | members_of(writing.PeopleMail, to)
        return writing.PeopleMail(**members, link=await self._address(connection, row, about), about=about)

    async def _address(self, connection: Connection, row: Row, about: writing.About | None) -> str | None:
        """Returns the link of the mail: a new one for its purpose, or the page that it is about. None for a test, which is already written."""
        if row["content"] is not None:
            return None
        if row["kind"] == "low_balance":
            return f"{self._public_url}/app/funding?account={row['account_id']}"
        if row["kind"] == "credited":
            return f"{self._public_url}/app/funding/{row['account_id']}"
        if about is not None and row["kind"] == "thank_you":
            return f"{self._public_url}/app/orders/{about['reference']}"
        if row["request_id"] is not None:
            return f"{self._public_url}/app/approvals/{row['request_id']}"
        if row["automation_id"] is not None:
            return f"{self._public_url}/app/automations/{row['automation_id']}"
        kind = "invitation" if row["kind"] == "invitation" else "reset"
        secret = await new_link(
            connection, kind, user_id=row["user_id"], person_id=row["person_id"], ends_others=False, is_mailed=True
        )
        return f"{self._public_url}/app/link/{secret}"

    async def _send(self, mail: writing.PeopleMail) -> Tried:
        written = mail.content or writing.write(mail, self._mail_from, clock.now())
        try:
            handover = await self._transport.hand_over(self._sender, to_dial(mail.email), written, _always)
        except MailServerAwayError as error:
            if not self._draining:
                metrics.MAILS.labels("server_away").inc()
            return Tried("stopped" if self._draining else "away", reason=str(error))
        if handover.taken:
            return Tried("sent")
        fault = fault_of(handover)
        outcome = "refused" if fault is Fault.RECIPIENT else "again"
        if fault is Fault.SERVER:
            metrics.MAILS.labels("server_refused" if handover.refused else "server_failed").inc()
        if fault is Fault.SERVER and not handover.may_have_been_taken:
            outcome = "away"
        reason = handover.reason if handover.code is None else None  # the server's words may name the recipient
        return Tried(outcome, handover.stage, handover.code, reason)


async def _put_off(connection: Connection, row: Row) -> None:
    attempts = row["attempts"]
    await connection.execute(store.RETRY_PEOPLE_MAIL, row["id"], attempts, SCHEDULE.delay_s(attempts))


async def _always() -> None:
    """Lets every mail leave: this mail needs no check before it is sent."""
