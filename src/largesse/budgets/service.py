"""Creates, changes and ends budgets, each under the lock under which orders are decided, so that no order is missed."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, time
from types import EllipsisType

import msgspec
from msgspec.structs import asdict

from largesse.base.errors import InvalidRequest, NotFound, existing
from largesse.base.money import label
from largesse.budgets import store
from largesse.budgets.model import KINDS, PERIODS, ROLES, Budget, period_start
from largesse.customers.actor import Actor, Transaction
from largesse.customers.customer_store import lock_customer, require_currency
from largesse.customers.roles import Right
from largesse.db.pool import Connection, commit_as_one
from largesse.db.statements import read_now
from largesse.ledger.own_accounts import own_accounts, set_has_budgets
from largesse.ledger.posting import lock_accounts

MOST_BUDGETS = 200  # per customer and environment
MOST_NAME = 60  # characters
MOST_PEOPLE = 500  # people in a group


class NewBudget(msgspec.Struct, frozen=True, kw_only=True):
    """A budget to create. Amounts are in minor units of its currency. None means no limit."""

    name: str
    currency: str
    kind: str
    period: str = "month"
    subject_id: int | None = None  # the id of a person, a service account or an account
    role: str | None = None
    user_ids: Collection[int] = ()  # the people of a group
    limit_minor: int | None = None
    per_gift_minor: int | None = None


class TooManyBudgets(InvalidRequest, rule=f"A customer has at most {MOST_BUDGETS} budgets in an environment."):
    """The customer has as many budgets as it may."""


class BudgetNameTaken(InvalidRequest, rule="`name` is the name of another budget."):
    """Another budget has the name."""


class BelowSpent(InvalidRequest):
    """The total is below what was spent in the current period."""

    def __init__(self, spent_minor: int, currency: str) -> None:
        super().__init__(
            f"`limit` must be at least {label(spent_minor, currency)}, which was spent in this period already."
        )
        self.spent_minor = spent_minor


async def create_budget(actor: Actor, new: NewBudget) -> int:
    """Creates a budget and returns its id. Orders of the current month or quarter count towards it. A budget without periods starts empty.

    Raises InvalidRequest, TooManyBudgets, BudgetNameTaken, BelowSpent, NotFound for a subject that is not the customer's, and OperatorError
    for an unknown currency.
    """
    _require_sound(new)
    async with actor.transaction(Right.SETTINGS) as transaction:
        connection = transaction.connection
        await commit_as_one(connection)
        await require_currency(connection, new.currency)
        await lock_customer(connection, actor.customer_id)
        existing = await _require_room(transaction, new.name)
        if len(existing) >= MOST_BUDGETS:
            raise TooManyBudgets
        subject = await _subject(transaction, new)
        sales_id = await _lock_sales(transaction, new.currency)
        now = await read_now(connection)
        budget = await _add(transaction, new, now)
        since = now if new.period == "total" else datetime.combine(period_start(new.period, now), time(), UTC)
        spent_minor = await store.count_earlier(connection, budget, since, await _people(connection, budget))
        if new.limit_minor is not None and new.limit_minor < spent_minor:
            raise BelowSpent(spent_minor, new.currency)
        await set_has_budgets(connection, actor.customer_id, sales_id, has_budgets=True)
        after = {"name": new.name, **subject, "period": new.period, **_amounts(budget)}
        await transaction.record("budget.created", f"budget {budget.id}", after=after)
    return budget.id


async def change_budget(
    actor: Actor,
    budget_id: int,
    *,
    name: str | None = None,
    limit_minor: int | EllipsisType | None = ...,
    per_gift_minor: int | EllipsisType | None = ...,
    user_ids: Collection[int] | None = None,
) -> None:
    """Changes the name and the amounts of a budget, and the people of a group. It applies from the next order on.

    A name or people of None, and an amount that is not given, stay.

    Raises NotFound, InvalidRequest, BudgetNameTaken and BelowSpent.
    """
    async with actor.transaction(Right.SETTINGS) as transaction:
        connection = transaction.connection
        await commit_as_one(connection)
        await lock_customer(connection, actor.customer_id)
        before = _find(await _current(transaction), budget_id)
        people = before.user_ids if user_ids is None or before.kind != "group" else frozenset(user_ids)
        budget = msgspec.structs.replace(
            before,
            name=before.name if name is None else name,
            limit_minor=before.limit_minor if isinstance(limit_minor, EllipsisType) else limit_minor,
            per_gift_minor=before.per_gift_minor if isinstance(per_gift_minor, EllipsisType) else per_gift_minor,
            user_ids=people,
        )
        await _require_room(transaction, budget.name, but=budget_id)
        _require_sound(budget)
        await _require_people(transaction, people - before.user_ids)
        await _lock_sales(transaction, budget.currency)
        spent_minor = await connection.fetchval(store.SPENT_IN_PERIOD, *budget.key(await read_now(connection))) or 0
        limit = budget.limit_minor
        if limit is not None and limit < spent_minor and limit != before.limit_minor:
            raise BelowSpent(spent_minor, budget.currency)
        await store.change_budget(connection, budget)
        if budget != before:
            old, new = (dict[str, object]({"name": one.name, **_amounts(one)}) for one in (before, budget))
            if people != before.user_ids:
                old["people"], new["people"] = sorted(before.user_ids), sorted(people)
            await transaction.record("budget.changed", f"budget {budget_id}", before=old, after=new)


async def end_budget(actor: Actor, budget_id: int) -> str:
    """Ends a budget and returns its name. It no longer limits orders. Refunds still count. Raises NotFound."""
    async with actor.transaction(Right.SETTINGS) as transaction:
        connection = transaction.connection
        await commit_as_one(connection)
        await lock_customer(connection, actor.customer_id)
        budget = _find(await _current(transaction), budget_id)
        sales_id = await _lock_sales(transaction, budget.currency)
        await store.end_budget(connection, actor.customer_id, budget_id)
        some_left = await store.has_budgets(connection, actor.customer_id, budget.environment, budget.currency)
        await set_has_budgets(connection, actor.customer_id, sales_id, has_budgets=some_left)
        await transaction.record(
            "budget.ended", f"budget {budget_id}", before={"name": budget.name, **_amounts(budget)}
        )
    return budget.name


def _require_sound(new: NewBudget | Budget) -> None:
    """Raises InvalidRequest for an invalid budget."""
    if not 0 < len(new.name) <= MOST_NAME:
        raise InvalidRequest(f"`name` must have 1 to {MOST_NAME} characters.")
    if new.kind not in KINDS:
        raise InvalidRequest(f"`kind` must be one of: {', '.join(KINDS)}.")
    if new.period not in PERIODS:
        raise InvalidRequest(f"`period` must be one of: {', '.join(PERIODS)}.")
    if new.kind == "role" and new.role not in ROLES:
        raise InvalidRequest(f"`role` must be one of: {', '.join(ROLES)}.")
    if new.kind == "group" and not 0 < len(new.user_ids) <= MOST_PEOPLE:
        raise InvalidRequest(f"`user_ids` must name 1 to {MOST_PEOPLE} people.")
    if new.limit_minor is None and new.per_gift_minor is None:
        raise InvalidRequest("`limit` or `per_gift` is required.")
    if (new.limit_minor or 0) < 0 or (new.per_gift_minor is not None and new.per_gift_minor <= 0):
        raise InvalidRequest("`limit` and `per_gift` must be amounts.")


async def _current(transaction: Transaction) -> list[Budget]:
    actor, connection = transaction.actor, transaction.connection
    return await store.list_budgets(connection, actor.place, await read_now(connection))


async def _require_room(transaction: Transaction, name: str, *, but: int = 0) -> list[Budget]:
    """Returns the existing budgets. Raises BudgetNameTaken if one of them, except the one with the id `but`, has the name."""
    existing = await _current(transaction)
    if any(one.name.lower() == name.lower() and one.id != but for one in existing):
        raise BudgetNameTaken
    return existing


def _find(budgets: Collection[Budget], budget_id: int) -> Budget:
    return existing(next((one for one in budgets if one.id == budget_id), None), "There is no such budget.")


async def _subject(transaction: Transaction, new: NewBudget) -> Mapping[str, object]:
    """Returns the subject of a budget for the audit log. Raises NotFound."""
    actor = transaction.actor
    if new.kind == "role":
        return {"role": new.role}
    if new.kind == "group":
        await _require_people(transaction, new.user_ids)
        return {"people": sorted(set(new.user_ids))}
    place = *actor.place, new.currency
    name = existing(
        await store.find_subject(transaction.connection, new.kind, new.subject_id or 0, place),
        "There is no such person, service account or account in that currency.",
    )
    return {"of": name}


async def _require_people(transaction: Transaction, user_ids: Collection[int]) -> None:
    """Raises NotFound unless all of these are people of the customer."""
    place = transaction.actor.customer_id, "", ""
    for user_id in sorted(set(user_ids)):
        if await store.find_subject(transaction.connection, "person", user_id, place) is None:
            raise NotFound("There is no such person.")


async def _lock_sales(transaction: Transaction, currency: str) -> int:
    """Locks the account that every order of the currency changes, and returns its id."""
    actor, connection = transaction.actor, transaction.connection
    own = await own_accounts(connection, *actor.place, currency)
    await lock_accounts(connection, actor.customer_id, [own["sales"]])
    return own["sales"]


async def _add(transaction: Transaction, new: NewBudget, now: datetime) -> Budget:
    actor, connection = transaction.actor, transaction.connection
    values = asdict(new) | {"user_ids": frozenset(new.user_ids if new.kind == "group" else ())}
    if new.kind not in {"person", "service_account", "account"}:
        values["subject_id"] = None
    if new.kind != "role":
        values["role"] = None
    customer_id, environment = actor.place
    budget = Budget(customer_id=customer_id, id=0, environment=environment, starts_at=now, **values)
    return msgspec.structs.replace(budget, id=await store.add_budget(connection, budget))


async def _people(connection: Connection, budget: Budget) -> Collection[int]:
    """Returns the people whose earlier orders count towards a new budget."""
    match budget.kind:
        case "person":
            return [budget.subject_id or 0]
        case "role":
            return await store.list_senders(connection, budget.customer_id, budget.role or "")
        case _:
            return budget.user_ids


def _amounts(budget: Budget) -> Mapping[str, object]:
    """Returns the amounts of a budget for the audit log."""
    return {"limit_minor": budget.limit_minor, "per_gift_minor": budget.per_gift_minor, "currency": budget.currency}
