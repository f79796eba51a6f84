"""The audit log: who did what, newest first, as sentences and as a file."""

import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from markupsafe import Markup, escape
from starlette.responses import Response

from largesse.audit.service import LOOKED_AT_OF_CUSTOMER, AuditEvent, EventFilter, newest_events
from largesse.base.i18n.languages import text
from largesse.customers.members import list_members
from largesse.customers.roles import Right
from largesse.db.scope import for_lists
from largesse.ledger.top_ups import spelled_reference
from largesse.reports.names import Names, find_subjects, read_names
from largesse.web.console.audit_words import KINDS, LABELS, NOTHING, SENTENCES, UNLIMITED, acts_of, kind_of
from largesse.web.console.context import PageContext, RequestContext
from largesse.web.console.people import ROLE_NAMES
from largesse.web.kit.query import INT64

_PAGE = 50
_OF_FILE_AT_ONCE = 1_000
_COLUMNS = (
    "id", "at", "environment", "actor", "actor_name", "address", "request_id", "act", "subject", "before", "after"
)  # fmt: skip
_ACTORS = {"command": text("The operator"), "worker": text("Largesse")}
# The page of an act's subject, by the subject's kind, and the right that opens it for every subject.
_PAGES = {
    "order": ("/app/orders/{}", Right.SEE_ORDERS),
    "account": ("/app/funding/{}", Right.SEE_FUNDS),
    "service account": ("/app/service-accounts/{}", Right.SETTINGS),
    "API key": ("/app/keys/{}", Right.SETTINGS),
    "template": ("/app/templates/{}", Right.TEMPLATES),
    "collection": ("/app/collections/{}", Right.SEE_ORDERS),
    "contact": ("/app/contacts/{}", Right.CONTACTS),
    "automation": ("/app/automations/{}", Right.CONTACTS),
    "subscription": ("/app/webhooks/{}", Right.SETTINGS),
    "top-up": ("/app/funding/top-ups/{}", Right.SEE_FUNDS),
    "budget": ("/app/budgets/{}", Right.SETTINGS),
    "send": ("/app/approvals/{}", Right.SETTINGS),
}
_GONE = frozenset(
    ("contact.removed", "key.deleted", "template.removed", "collection.removed", "webhook.deleted", "budget.ended")
)
_PLACEHOLDER = re.compile(r"%\((?:old|new)_(\w+)\)s")
_OF_PEOPLE = ("user_ids", "people")  # ids of people; in entries of earlier releases, `people` is how many there are
_NAMED_AS = {"account_id": "account", "from_account_id": "account", "to_account_id": "account"}


class Change(NamedTuple):
    """A changed value: its label, and the text before and after; None if there was or is no value."""

    label: str
    old: str | None
    new: str | None


class Entry(NamedTuple):
    """An entry of the log, as the page shows it."""

    event: AuditEvent
    icon: str
    said: Markup
    changes: list[Change]


async def show(context: RequestContext) -> Response:
    """Shows a page of the log, filtered by actor, subject, act and kind."""
    wanted = await _filter(context)
    before = context.parameters.number("before", INT64)
    async with context.database.connection(context.person.list_scope) as connection:
        events, following = await newest_events(connection, wanted, before=before, limit=_PAGE)
        members = await list_members(connection, context.person.customer_id)
    names = await _names(context, events)
    return context.page(
        "log.html",
        entries=[entry_of(context, event, names, SENTENCES, _what(context, event, names)) for event in events],
        kinds=[(kind, context.say(name)) for kind, (_, name, _) in KINDS.items()],
        people=[(member.email, member.name) for member in members],
        query=context.query,
        older=context.here(before=following) if following is not None else None,
        looked_at=context.language.number(LOOKED_AT_OF_CUSTOMER),
        newest=context.here(before=None) if before is not None else None,
        is_filtered=any(context.query(name) for name in ("act", "kind", "who", "q")) or before is not None,
        csv=context.here(before=None).replace("/app/audit", "/app/audit.csv", 1),
    )


async def download(context: RequestContext) -> Response:
    """Sends all entries that match the page's filter as a CSV file."""
    return await context.csv("audit-log.csv", _COLUMNS, _rows(context))


async def _rows(context: RequestContext) -> AsyncIterator[Sequence[object]]:
    wanted, before, has_more = await _filter(context), None, True
    while has_more:
        events, before = await context.read(newest_events, wanted, before=before, limit=_OF_FILE_AT_ONCE)
        has_more = before is not None
        for event in events:
            values = (getattr(event, column) for column in _COLUMNS)
            yield [value.isoformat() if hasattr(value, "isoformat") else value for value in values]


async def _filter(context: RequestContext) -> EventFilter:
    """Returns the filter in the page's address. An unknown act or kind does not filter."""
    customer_id, act = context.person.customer_id, context.query("act")
    who, words = context.query("who").strip(), context.query("q").strip()
    async with context.database.connection(context.person.scope) as connection:
        actors = await find_subjects(connection, customer_id, who) if who else []
        subjects = await find_subjects(connection, customer_id, words) if words else []
    acts = [act] if act in SENTENCES else acts_of(context.query("kind"))
    return EventFilter(customer_id, tuple(acts), who, words, tuple(actors), tuple(subjects))


def accounts_in(event: AuditEvent) -> set[str]:
    """Returns the accounts that the changes of an event mention, as subjects."""
    changed = (_members(event.before), _members(event.after))
    return {f"account {members[name]}" for members in changed for name in _NAMED_AS if name in members}


async def _names(context: RequestContext, events: Sequence[AuditEvent]) -> Names:
    """Returns the names of the actors of these events and of everything that the events mention, in each of their environments."""
    customer_id, here = context.person.customer_id, context.person.environment
    subjects, user_ids = {event.subject for event in events}, set[int]()
    for event in events:
        if event.actor == "person":
            subjects.add(event.actor_name)
        subjects |= accounts_in(event)
        for members in (_members(event.before), _members(event.after)):
            user_ids.update(one for name in _OF_PEOPLE for one in _ids(members.get(name)))
    names = Names()
    for environment in {event.environment or here for event in events}:
        async with context.database.connection(for_lists(customer_id, environment)) as connection:
            names.add(await read_names(connection, customer_id, subjects, user_ids))
    return names


def entry_of(
    context: PageContext,
    event: AuditEvent,
    names: Names,
    sentences: Mapping[str, str],
    what: Markup,
    roles: Mapping[str, str] = ROLE_NAMES,
) -> Entry:
    """Returns an event as a sentence with its changes. `what` is its subject's name, `roles` the names of roles."""
    before, after = _members(event.before), _members(event.after)
    sentence = sentences.get(event.act, "")
    values: dict[str, Markup] = defaultdict(lambda: Markup("\N{EN DASH}"))
    values |= {"who": _strong(_who(context, event, names)), "what": what}
    for prefix, members in (("old", before), ("new", after)):
        for name in members:
            values[f"{prefix}_{name}"] = _strong(_value(context, event, names, members, name, roles))
    said = (
        escape(context.say(sentence)) % values
        if sentence
        else values["who"] + Markup(" <code>{}</code>").format(event.act)
    )
    used = set(_PLACEHOLDER.findall(sentence))
    if any(name.endswith("_minor") for name in {**before, **after}):
        used.add("currency")  # shown with the amounts
    if not ("name" in before and "name" in after):
        used.add("name")  # the sentence names it
    changes = []
    for name in (one for one in LABELS if one in {**before, **after} and one not in used):
        is_set = name in before and name in after  # a null on one side only is not a change
        old, new = (
            _value(context, event, names, members, name, roles)
            if is_set or members.get(name) is not None or (name in UNLIMITED and name in members)
            else None
            for members in (before, after)
        )
        if old != new:
            changes.append(Change(context.say(LABELS[name]), old, new))
    return Entry(event, KINDS[kind_of(event.act)][0], said, changes)


def _strong(words: str) -> Markup:
    return Markup("<strong>{}</strong>").format(words)


def _who(context: PageContext, event: AuditEvent, names: Names) -> str:
    """Returns the name of the actor: a person, a service account, the operator or Largesse.

    Only a person is looked up by address, and a service account is marked as one: its name may be the address or the name of a person.
    """
    if event.actor in _ACTORS:
        return context.say(_ACTORS[event.actor])
    if event.actor == "key":
        return context.say("%(name)s (API key)", name=event.actor_name)
    return names.subjects.get(event.actor_name, event.actor_name) if event.actor == "person" else event.actor_name


def _what(context: RequestContext, event: AuditEvent, names: Names) -> Markup:
    """Returns the name of an act's subject, as a link if it has a page."""
    subject = event.subject
    kind, _, id_ = subject.rpartition(" ")
    name = names.subjects.get(subject, subject)
    if kind == "send" or (kind == "order" and not names.subjects.get(subject)):
        name = Markup('<span class="code whole">…{}</span>').format(id_[-6:])
    elif kind == "top-up":
        name = spelled_reference(id_)
    elif kind == "contact":  # the log has no name, and the sentence says that it is a contact
        name = id_
    elif kind == "automation":
        name = f"{context.say('Automation')} {id_}"
    elif kind == "parcel":
        name = context.say("parcel %(name)s", name=id_)
    page, right = _PAGES.get(kind, ("", None))
    # A subject of the other environment cannot be opened, and a removed one has no page.
    is_here = event.act not in _GONE and event.environment in {None, context.person.environment}
    if right is None or not is_here or not context.person.may(right):
        return _strong(name)
    return Markup('<a href="{}">{}</a>').format(context.base + page.format(id_), name)


def _value(
    context: PageContext,
    event: AuditEvent,
    names: Names,
    members: Mapping[str, Any],
    name: str,
    roles: Mapping[str, str],
) -> str:
    """Returns the text of a member's value: amounts as money, roles and people by their names."""
    value = members[name]
    missing, said = UNLIMITED.get(name, NOTHING)
    if value in (missing, []):
        return context.say(said)
    if isinstance(value, bool):
        return context.say("Yes") if value else context.say("No")
    if name.endswith("_minor") and isinstance(value, int):
        account = f"account {members.get('account_id')}"
        currency = members.get("currency") or names.currencies.get(event.subject) or names.currencies.get(account)
        return context.language.amount(value, str(currency)) if currency else str(value)
    if name in {"scheduled_for", "claim_by"}:
        return context.moment(datetime.fromisoformat(value))
    if name in _NAMED_AS:
        return names.subjects.get(f"account {value}", str(value))
    if name == "role" and value in roles:
        return context.say(roles[value])
    if name in _OF_PEOPLE and isinstance(value, list):
        value = [names.people.get(one, one) for one in value]
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return context.language.number(value) if isinstance(value, int) else str(value)


def _members(changed: str | None) -> dict[str, Any]:
    members = json.loads(changed) if changed else {}
    return members if isinstance(members, dict) else {}


def _ids(value: object) -> list[int]:
    return [one for one in value if isinstance(one, int)] if isinstance(value, list) else []
