"""Lets members of staff see the web application as a customer sees it, for 30 minutes, with a reason that the customer can read."""

from datetime import datetime, timedelta

import msgspec

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.text import unfit
from largesse.customers.actor import Actor
from largesse.customers.sessions import Person, Session
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection

LASTS = timedelta(minutes=30)
SHORTEST_REASON, LONGEST_REASON = 10, 200

_END = "UPDATE customer_views SET ends_at = clock_now() WHERE session_id = $1 AND ends_at > clock_now()"
_BEGIN = """
    INSERT INTO customer_views (session_id, customer_id, environment, reason, began_at, ends_at)
    SELECT $1, $2, $3, $4, at, at + $5::interval FROM (SELECT clock_now() AS at) AS clock RETURNING ends_at
"""
_FIND = """
    SELECT v.customer_id, c.name AS customer, c.plan, c.funding, v.environment, v.ends_at
    FROM customer_views v JOIN customers c ON c.id = v.customer_id
    WHERE v.session_id = $1 AND v.ends_at > clock_now() ORDER BY v.id DESC LIMIT 1
"""
_IS_CUSTOMER = "SELECT EXISTS (SELECT FROM customers WHERE id = $1)"


def read_reason(typed: str) -> str:
    """Returns a reason, which the customer can read in their audit log. Raises InvalidRequest if it is too short, too long or unfit."""
    reason = " ".join(typed.split())
    if not SHORTEST_REASON <= len(reason) <= LONGEST_REASON:
        raise InvalidRequest(f"A reason must have {SHORTEST_REASON} to {LONGEST_REASON} characters.")
    if (held := unfit(reason)) is not None:
        raise InvalidRequest(f"A reason must not contain {held}.")
    return reason


class CustomerView(msgspec.Struct, frozen=True):
    """An open view: its customer, its environment and its end."""

    customer_id: int
    customer: str
    plan: str
    funding: str
    environment: str
    ends_at: datetime

    def session(self, email: str, language: str | None, zone: str | None) -> Session:
        """Returns a session for a viewer, who sees all pages and may change nothing.

        Its ids belong to nobody, so it has no orders, views or accounts of its own.
        """
        person = Person(
            session_id=0,
            person_id=0,
            user_id=0,
            email=email,
            name=email,
            role="viewer",
            customer_id=self.customer_id,
            customer_name=self.customer,
            plan=self.plan,
            funding=self.funding,
            environment=self.environment,
            is_proved=False,
        )
        return Session(
            id=0,
            person_id=0,
            email=email,
            environment=self.environment,
            language=language,
            zone=zone,
            notice=None,
            memberships=1,
            has_password=False,
            has_app=False,
            has_passkey=False,
            awaits_second_step=False,
            requires_second_step=False,
            lacks_second_step=False,
            person=person,
        )


async def begin_view(actor: Actor, session_id: int, reason: str) -> datetime:
    """Begins a view of the actor's customer and environment in a session of the back office. Returns its end.

    It ends a view that the session has open. Raises InvalidRequest for a reason beyond its limits, and NotFound for an unknown customer.
    """
    reason = read_reason(reason)
    async with actor.transaction(StaffRight.SEE_AS) as transaction:
        connection = transaction.connection
        if not await connection.fetchval(_IS_CUSTOMER, actor.customer_id):
            raise NotFound("There is no such customer.")
        await connection.execute(_END, session_id)
        values = (session_id, *actor.place, reason, LASTS)
        ends_at: datetime = await connection.fetchval(_BEGIN, *values)
        after = {"reason": reason, "until": ends_at}
        await transaction.record("customer.seen_as", f"customer {actor.customer_id}", after=after)
    return ends_at


async def end_view(actor: Actor, session_id: int) -> None:
    """Ends the open view of a session, if there is one."""
    async with actor.transaction(StaffRight.SEE_AS) as transaction:
        await transaction.connection.execute(_END, session_id)


async def find_view(connection: Connection, session_id: int) -> CustomerView | None:
    """Returns the open view of a session; None if there is none."""
    row = await connection.fetchrow(_FIND, session_id)
    return None if row is None else CustomerView(**row)
