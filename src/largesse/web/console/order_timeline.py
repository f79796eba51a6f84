"""The timeline of an order, in sentences with names, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from babel.dates import format_timedelta

from largesse.base import clock
from largesse.db.pool import Row
from largesse.mail.recipients import Progress
from largesse.orders.history import OrderAct
from largesse.reports.listing import ListedOrder
from largesse.web.console.context import RequestContext


class Happening(NamedTuple):
    """Something that happened to an order, or will: an icon, a sentence, and when."""

    icon: str
    said: str
    at: datetime


def timeline_of(
    context: RequestContext,
    order: Row,
    listed: ListedOrder,
    acts: Sequence[OrderAct],
    progress: Progress,
    claims: tuple[datetime | None, datetime | None],
    more: Sequence[Happening],
) -> list[Happening]:
    """Returns the timeline. `claims` are the times of the first and the last claim. `more` are further entries."""
    found = [*_planned(context, order), *_mail(context, progress), *_claims(context, order, progress, claims)]
    found += [*(_act(context, act) for act in acts), *more]
    by = listed.placed_by or context.say("Somebody")
    found.append(Happening("shopping-bag", context.say("%(by)s placed the order", by=by), order["created_at"]))
    return sorted(found, key=lambda one: one.at, reverse=True)


def _planned(context: RequestContext, order: Row) -> Iterator[Happening]:
    at = order["scheduled_for"]
    if at is not None and at > clock.now() and order["delivery_mode"] == "send":
        yield Happening("calendar-clock", context.say("The mail leaves"), at)


def _mail(context: RequestContext, progress: Progress) -> Iterator[Happening]:
    if progress.last_mail_at is None:
        return
    said = context.ngettext("%(count)s mail left", "%(count)s mails left", progress.mailed)
    if progress.refused:
        bounced = context.ngettext("%(count)s bounced", "%(count)s bounced", progress.refused)
        said = f"{said}, {bounced}"
    yield Happening("mail", said, progress.last_mail_at)


def _claims(
    context: RequestContext, order: Row, progress: Progress, claims: tuple[datetime | None, datetime | None]
) -> Iterator[Happening]:
    first, last = claims
    if first is None or last is None:
        return
    said = context.ngettext("%(count)s gift claimed", "%(count)s gifts claimed", progress.claimed)
    passed = first - (order["scheduled_for"] or order["created_at"])
    if passed.total_seconds() > 0:
        after = format_timedelta(passed, locale=context.language.locale)
        said = context.say("%(claims)s, the first after %(after)s", claims=said, after=after)
    yield Happening("circle-check", said, last)


def _act(context: RequestContext, act: OrderAct) -> Happening:
    by, to = act.by or context.say("Somebody"), act.recipient
    if act.act == "cancel":
        return Happening("ban", _cancelled(context, act, by), act.at)
    if act.act == "correct":
        said = context.say("%(by)s corrected the address of %(to)s", by=by, to=to or context.say("a recipient"))
        if act.was_email and act.email:
            said = context.say(
                "%(by)s corrected the address of %(to)s from %(was)s to %(email)s",
                by=by,
                to=to,
                was=act.was_email,
                email=act.email,
            )
        return Happening("pencil", said, act.at)
    if act.act == "extend":
        was, at = (context.time(one) for one in (act.was_due_at or act.at, act.due_at or act.at))
        said = context.say("%(by)s moved the claim-by date from %(was)s to %(at)s", by=by, was=was, at=at)
        return Happening("calendar-clock", said, act.at)
    if act.act == "schedule":
        return Happening("calendar-clock", _rescheduled(context, act, by), act.at)
    if act.act == "read":
        said = context.say("%(by)s read the codes again", by=by)
        if to:
            said = context.say("%(by)s copied the claim link of %(to)s", by=by, to=to)
        return Happening("key-round", said, act.at)
    if act.times == 1:
        said = context.say("%(by)s sent the mail to %(to)s again", by=by, to=to or context.say("a recipient"))
        return Happening("send", said, act.at)
    said = context.ngettext("%(by)s sent %(count)s mail again", "%(by)s sent %(count)s mails again", act.times, by=by)
    return Happening("send", said, act.at)


def _cancelled(context: RequestContext, act: OrderAct, by: str) -> str:
    if act.recipient:
        return context.say("%(by)s cancelled the gift of %(to)s", by=by, to=act.recipient)
    if act.codes is None:
        return context.say("%(by)s cancelled the unclaimed gifts", by=by)
    return context.ngettext("%(by)s cancelled %(count)s gift", "%(by)s cancelled %(count)s gifts", act.codes, by=by)


def _rescheduled(context: RequestContext, act: OrderAct, by: str) -> str:
    if act.due_at is None or act.was_due_at is None or act.due_at <= act.at:
        return context.say("%(by)s sent the scheduled order at once", by=by)
    was, at = (context.time(one) for one in (act.was_due_at, act.due_at))
    return context.say("%(by)s moved the order from %(was)s to %(at)s", by=by, was=was, at=at)
