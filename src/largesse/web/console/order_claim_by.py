"""The claim-by date on the page of an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from largesse.base import clock
from largesse.base.zones import in_zone
from largesse.db.pool import Row
from largesse.reports.listing import ListedOrder
from largesse.web.console.context import RequestContext
from largesse.web.console.order_timeline import Happening

DAY = "%Y-%m-%d"  # as browsers post `date`


@dataclass(frozen=True, slots=True)
class Claiming:
    """The claim-by date of an order. `lapses` are the times at which unclaimed codes were cancelled, how many, and the amount refunded."""

    at: datetime
    seen: str
    day: str  # as the form field shows it
    is_open: bool  # the date is in the future, and there are unclaimed codes
    lapses: list[tuple[datetime, int, str]]


def claiming_of(
    context: RequestContext,
    at: datetime | None,
    lapses: Sequence[tuple[datetime, int]],
    order: Row,
    listed: ListedOrder,
) -> Claiming | None:
    """Returns the claim-by date of an order; None for an order without one."""
    if at is None:
        return None
    code_minor = order["total_minor"] // order["code_count"]
    returned = [(when, codes, context.language.amount(code_minor * codes, order["currency"])) for when, codes in lapses]
    day = in_zone(at, context.zone).strftime(DAY)
    return Claiming(at, at.isoformat(), day, listed.is_open and at > clock.now(), returned)


def said_of(context: RequestContext, claiming: Claiming | None) -> list[Happening]:
    """Returns the timeline's entries about the date."""
    if claiming is None:
        return []
    said = [
        Happening(
            "undo-2",
            context.ngettext(
                "%(count)s gift was not claimed in time: %(amount)s came back",
                "%(count)s gifts were not claimed in time: %(amount)s came back",
                codes,
                amount=amount,
            ),
            at,
        )
        for at, codes, amount in claiming.lapses
    ]
    if claiming.is_open:
        said.append(
            Happening(
                "undo-2", context.say("What nobody has claimed is cancelled, and the money comes back"), claiming.at
            )
        )
    return said


def reminders_of(context: RequestContext, reminded: Sequence[tuple[datetime, int]]) -> list[Happening]:
    """Returns the timeline's entries about reminders, one for each kind: when the first was sent, and how many were."""
    return [
        Happening("bell", context.ngettext("%(count)s reminder left", "%(count)s reminders left", mails), at)
        for at, mails in reminded
    ]
