"""Operations on approvals: creating and ending rules; submitting, deciding and withdrawing requests.

`drafts.service` submits a draft, and sends it once it is approved. A decision locks its request, so that it counts once, however often people
press the button.
"""

from collections.abc import Collection, Mapping

import msgspec

from largesse.approvals import model, store
from largesse.base.errors import InvalidRequest, NotFound, existing
from largesse.base.settings import ENVIRONMENTS
from largesse.customers.actor import Actor, Transaction
from largesse.customers.customer_store import lock_customer, require_currency
from largesse.customers.principal import ADMIN
from largesse.customers.roles import Right
from largesse.db.pool import Connection, Database
from largesse.db.scope import Place, for_customers
from largesse.db.statements import read_now
from largesse.jobs.outbox import mail_users

MOST_RULES = 50  # per customer and environment
MOST_NAME = 60  # characters
MOST_NOTE = 500
MOST_CHOSEN = 100  # most accounts, gifts or approvers of a rule
MOST_LISTED = 200  # requests on a page
_NARROWED = ("account_ids", "product_ids", "collection_ids")  # what a rule is limited to
SENT_WITHIN_S = 15.0  # after its approval, or it is not sent by itself


class TooManyRules(InvalidRequest, rule=f"A customer has at most {MOST_RULES} approval rules in an environment."):
    """The customer has as many rules as it may."""


class RuleNameTaken(InvalidRequest, rule="`name` is the name of another rule."):
    """Another rule has the name."""


class NobodyMayApprove(InvalidRequest, rule="Not enough people may approve: nobody approves their own send."):
    """There are not enough people who may approve."""


class OwnRequest(InvalidRequest, rule="Nobody approves their own send."):
    """The person would decide about their own send."""


class AlreadyDecided(InvalidRequest, rule="This person has decided about the send."):
    """The person has approved the send. It waits for others."""


class RequestEnded(InvalidRequest):
    """The request no longer waits: it was decided, withdrawn, or has expired. `state` says which."""

    def __init__(self, state: str) -> None:
        super().__init__(f"The request is {state}.")
        self.state = state


class RequestChanged(InvalidRequest, rule="The send was changed after approval was asked for. Its person asks again."):
    """The draft was changed, or deleted, after approval was asked for."""


class SeenRequest(msgspec.Struct, frozen=True):
    """A request as a person sees it: with its rules, and whether they have decided about it or may decide.

    `has_too_few` is set if it waits, but too few people may still approve it, as somebody left or lost the role.
    """

    request: model.ApprovalRequest
    rules: Collection[model.ApprovalRule]
    has_decided: bool
    may_decide: bool
    has_too_few: bool


async def create_rule(actor: Actor, rule: model.ApprovalRule) -> int:
    """Creates a rule of the actor's customer and environment, and returns its id. It applies from the next order on.

    Raises InvalidRequest, TooManyRules, RuleNameTaken, NobodyMayApprove, NotFound for an unknown approver, and OperatorError for an unknown
    currency.
    """
    customer_id, environment = actor.place
    rule = msgspec.structs.replace(rule, customer_id=customer_id, environment=environment)
    _require_sound(rule)
    async with actor.transaction(Right.SETTINGS) as transaction:
        connection = transaction.connection
        await lock_customer(connection, actor.customer_id)
        if rule.currency is not None:
            await require_currency(connection, rule.currency)
        existing = await store.list_rules(connection, actor.place)
        if len(existing) >= MOST_RULES:
            raise TooManyRules
        if any(one.name.lower() == rule.name.lower() for one in existing):
            raise RuleNameTaken
        people = await store.list_people(connection, actor.customer_id)
        if not rule.approver_ids <= people.keys():
            raise NotFound("There is no such person.")
        if sum(rule.may_approve(one, role) for one, role in people.items()) < rule.needed:
            raise NobodyMayApprove
        rule_id = await store.add_rule(connection, rule)
        await transaction.record("approval_rule.created", f"approval rule {rule_id}", after=_audited(rule))
    return rule_id


async def end_rule(actor: Actor, rule_id: int) -> str:
    """Ends a rule and returns its name. It applies to no later send. Requests that wait for it still wait. Raises NotFound."""
    async with actor.transaction(Right.SETTINGS) as transaction:
        name = existing(await store.end_rule(transaction.connection, actor.place, rule_id), "There is no such rule.")
        await transaction.record("approval_rule.ended", f"approval rule {rule_id}", before={"name": name})
    return name


async def submit(
    transaction: Transaction, request: model.ApprovalRequest, rules: Collection[model.ApprovalRule]
) -> None:
    """Saves a waiting request of the actor, and mails the people who may decide.

    Raises NobodyMayApprove, and NotFound if the draft has a request of another person.
    """
    connection, actor = transaction.connection, transaction.actor
    people = await store.list_people(connection, actor.customer_id)
    if not model.can_be_met(rules, people, request.user_id):
        raise NobodyMayApprove
    if await store.save_request(connection, request) is None:
        raise NotFound("There is no draft with that reference.")
    deciders = [one for one, role in people.items() if model.may_decide(rules, one, role, request.user_id)]
    await mail_users(connection, "approval_asked", deciders, request_id=request.id)
    after = {**_total(request), "rules": [rule.name for rule in rules]}
    await transaction.record("approval.asked", f"send {request.id}", after=after)


async def read_request(actor: Actor, connection: Connection, request_id: str, *, lock: bool = False) -> SeenRequest:
    """Returns a request that the person may see: their own, one they may decide, or any to an administrator. Raises NotFound.

    With `lock` it is locked until the transaction ends.
    """
    request = await store.find_request(connection, actor.place, request_id, lock=lock)
    if request is not None:
        rules = await store.find_rules(connection, actor.customer_id, request.rule_ids)
        if _may_see(actor, request, rules):
            people = await store.list_people(connection, actor.customer_id)
            return _seen(actor, request, rules, await _list_decided(actor, connection), people)
    raise NotFound("There is no such request.")


async def list_seen(actor: Actor, connection: Connection) -> list[SeenRequest]:
    """Returns the requests that the person may see: those that wait, the newest others, and the person's own."""
    requests = await store.list_requests(connection, actor.place, most=MOST_LISTED, user_id=actor.user_id)
    ids = {rule_id for request in requests for rule_id in request.rule_ids}
    by_id = {rule.id: rule for rule in await store.find_rules(connection, actor.customer_id, ids)} if ids else {}
    decided = await _list_decided(actor, connection)
    people = await store.list_people(connection, actor.customer_id) if requests else {}
    seen = []
    for request in requests:
        rules = [by_id[one] for one in sorted(request.rule_ids)]
        if _may_see(actor, request, rules):
            seen.append(_seen(actor, request, rules, decided, people))
    return seen


async def decide(
    actor: Actor, request_id: str, note: str, *, seen_round: int | None, approves: bool
) -> model.ApprovalRequest:
    """Approves or declines a send, and returns the new state of the request: approved if every rule is met, otherwise still waiting.

    `seen_round` is the round of the request that the person saw. Raises NotFound if the person may not decide, OwnRequest, RequestEnded,
    AlreadyDecided, and RequestChanged if the draft was changed since the request, or approval was requested again since the person saw it.
    """
    async with actor.transaction() as transaction:
        connection = transaction.connection
        seen = await read_request(actor, connection, request_id, lock=True)
        request, rules = seen.request, seen.rules
        if request.user_id == actor.user_id:
            raise OwnRequest
        if not seen.may_decide:
            _refuse_ended(request)
            if seen.has_decided:
                raise AlreadyDecided
            raise NotFound("There is nothing here for you to decide.")
        _refuse_ended(request)
        if request.expires_at <= await read_now(connection):
            raise RequestEnded(model.EXPIRED)
        if request.round != seen_round:
            raise RequestChanged
        if approves and await store.draft_changed_at(connection, request) != request.draft_changed_at:
            raise RequestChanged
        assert actor.user_id is not None, "a person"
        await store.add_decision(connection, request, actor.user_id, note, approves=approves)
        state = await _state_after(connection, request, rules)
        if state != request.state:
            await store.end_request(connection, request, state)
            # The mail says whether the order was placed, which is known after this transaction.
            delay_s = SENT_WITHIN_S if state == model.APPROVED else 0.0
            people = [request.user_id]
            await mail_users(connection, "approval_ended", people, request_id=request.id, delay_s=delay_s)
        act = "approval.given" if approves else "approval.declined"
        await transaction.record(act, f"send {request.id}", after={**_total(request), "state": state})
    return msgspec.structs.replace(request, state=state)


async def withdraw(actor: Actor, request_id: str) -> None:
    """Withdraws the person's own request. Raises NotFound, and RequestEnded once it was sent, declined or expired."""
    async with actor.transaction(Right.SEND) as transaction:
        request = (await read_request(actor, transaction.connection, request_id, lock=True)).request
        if request.user_id != actor.user_id:
            raise NotFound("You have no such request.")
        if request.is_sent or request.state not in {model.WAITING, model.APPROVED}:
            raise RequestEnded("sent" if request.is_sent else request.state)
        await store.end_request(transaction.connection, request, model.WITHDRAWN)
        await transaction.record("approval.withdrawn", f"send {request.id}")


async def withdraw_unsent(
    connection: Connection, place: Place, request_id: str, states: Collection[str] = (model.WAITING, model.APPROVED)
) -> bool:
    """Withdraws a request in one of these states if nothing was sent with it. Returns whether there was one.

    For a draft that was changed or deleted. `place` is the customer and the environment. Call it inside a transaction.
    """
    request = await store.find_request(connection, place, request_id, lock=True)
    if request is None or request.is_sent or request.state not in states:
        return False
    await store.end_request(connection, request, model.WITHDRAWN)
    return True


async def list_answers(
    connection: Connection, request: model.ApprovalRequest, rules: Collection[model.ApprovalRule]
) -> list[tuple[model.Decision, bool]]:
    """Returns the decisions about a request, each with whether it counts.

    While the request waits, only decisions of people who may still decide count.
    """
    decisions = await store.list_decisions(connection, request)
    people = await store.list_people(connection, request.customer_id)
    return [
        (
            one,
            not request.is_waiting
            or (one.user_id in people and model.may_decide(rules, one.user_id, people[one.user_id], request.user_id)),
        )
        for one in decisions
    ]


async def list_needing(database: Database, customer_id: int, user_id: int) -> list[model.ApprovalRule]:
    """Returns the rules of both environments that too few people could approve if this person were removed, and enough can now."""
    places = [(customer_id, environment) for environment in ENVIRONMENTS]
    async with database.connection(for_customers(places)) as connection:
        rules = [rule for place in places for rule in await store.list_rules(connection, place)]
        people = await store.list_people(connection, customer_id)
    others = {one: role for one, role in people.items() if one != user_id}
    already = model.rules_short_of(rules, people)
    return [rule for rule in model.rules_short_of(rules, others) if rule not in already]


async def expire_requests(connection: Connection) -> int:
    """Ends requests that nobody decided in time, and mails their people. Returns how many. Call it inside a transaction."""
    expired = await store.expire(connection)
    for request_id, user_id in expired:
        await mail_users(connection, "approval_ended", [user_id], request_id=request_id)
    return len(expired)


def _may_see(actor: Actor, request: model.ApprovalRequest, rules: Collection[model.ApprovalRule]) -> bool:
    may_approve = any(rule.may_approve(actor.user_id or 0, actor.role or "") for rule in rules)
    return actor.role == ADMIN or actor.user_id == request.user_id or may_approve


async def _list_decided(actor: Actor, connection: Connection) -> set[str]:
    return await store.list_decided(connection, actor.place, actor.user_id or 0)


def _seen(
    actor: Actor,
    request: model.ApprovalRequest,
    rules: Collection[model.ApprovalRule],
    decided: Collection[str],
    people: Mapping[int, str],
) -> SeenRequest:
    has_decided = request.id in decided
    may = model.may_decide(rules, actor.user_id or 0, actor.role or "", request.user_id)
    has_too_few = request.is_waiting and not model.can_be_met(rules, people, request.user_id)
    return SeenRequest(request, rules, has_decided, request.is_waiting and may and not has_decided, has_too_few)


def _refuse_ended(request: model.ApprovalRequest) -> None:
    if not request.is_waiting:
        raise RequestEnded("sent" if request.is_sent else request.state)


async def _state_after(
    connection: Connection, request: model.ApprovalRequest, rules: Collection[model.ApprovalRule]
) -> str:
    """Returns the state of a request after all decisions of people who may still decide."""
    # The people first: an invitation commits at once that somebody belongs to the customer again and has decided nothing.
    people = await store.list_people(connection, request.customer_id)
    decisions = await store.list_decisions(connection, request)
    if any(not one.approves for one in decisions):
        return model.DECLINED
    approvals = {one.user_id: people[one.user_id] for one in decisions if one.user_id in people}
    return model.APPROVED if model.is_approved(rules, approvals, request.user_id) else request.state


def _require_sound(rule: model.ApprovalRule) -> None:
    """Raises InvalidRequest for an invalid rule."""
    if not 0 < len(rule.name) <= MOST_NAME:
        raise InvalidRequest(f"`name` must have 1 to {MOST_NAME} characters.")
    if rule.role is not None and rule.role not in model.ROLES:
        raise InvalidRequest(f"`role` must be one of: {', '.join(model.ROLES)}.")
    if rule.needed not in model.NEEDED or not 1 <= rule.expires_days <= model.MOST_DAYS:
        raise InvalidRequest(f"A rule needs 1 or 2 approvals, within 1 to {model.MOST_DAYS} days.")
    if (rule.above_minor is None) != (rule.currency is None) or (rule.above_minor or 0) < 0:
        raise InvalidRequest("`above` must be an amount in a currency.")
    if any(
        len(one) > MOST_CHOSEN for one in (rule.account_ids, rule.product_ids, rule.collection_ids, rule.approver_ids)
    ):
        raise InvalidRequest(f"A rule names at most {MOST_CHOSEN} accounts, gifts or people.")


def _total(request: model.ApprovalRequest) -> Mapping[str, object]:
    """Returns the total of a request for the audit log."""
    return {"total_minor": request.total_minor, "currency": request.currency}


def _audited(rule: model.ApprovalRule) -> Mapping[str, object]:
    """Returns a rule for the audit log: all of its conditions, and as `people` those who alone may approve."""
    above = {"above_minor": rule.above_minor, "currency": rule.currency}
    narrowed = {name: sorted(ids) for name in _NARROWED if (ids := getattr(rule, name))}
    people = {"people": sorted(rule.approver_ids)} if rule.approver_ids else {}
    facts = {"name": rule.name, "role": rule.role, **above, "needed": rule.needed, **people, **narrowed}
    return {**facts, "beyond_budget": rule.beyond_budget, "expires_days": rule.expires_days}
