"""What a route of the table of routes says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.customers.roles import RIGHTS, ROLES, Right
from largesse.web.kit.body import BodyLimits
from largesse.web.kit.forms import FORM_LIMITS


class Access(Enum):
    """Whom an address is for, where no right of a role decides."""

    ANYONE = auto()  # signed in or not
    ENTERING = auto()  # also between the password and the second step
    SIGNED_IN = auto()  # also before a customer is chosen
    MEMBER = auto()  # of the chosen customer, whatever the role


class Group(Enum):
    """The parts of the menu, in their order, and what each is called."""

    GIFTS = text("Gifts")
    MONEY = text("Money")
    SETUP = text("Set-up")


@dataclass(frozen=True, slots=True)
class PageRoute:
    """An address with a method: who may, and which handler answers.

    `title` is what a page is called; with a `group` it stands in the menu. `limits` and `most_fields` are those of a posted form.
    `before_reading` raises what keeps a large form from being read at all: it is called once the token was found to be one of ours.
    """

    method: str
    path: str
    handler: Callable[[Any], Awaitable[Response]]  # takes a RequestContext
    who: Right | Access
    title: str | None = None
    group: Group | None = None
    limits: BodyLimits = FORM_LIMITS
    most_fields: int = 40
    before_second_step: bool = False  # also for who has to set one up first
    takes_files: bool = False  # its form may be handed in with files, in `context.files`
    before_reading: Callable[[Any], Awaitable[object]] | None = None  # takes a RequestContext
    step_up: bool = False  # its form is carried out for who showed a moment ago that it is still them

    @property
    def is_of_customer(self) -> bool:
        """Whether it is about the customer that was chosen."""
        return self.who not in {Access.ANYONE, Access.ENTERING, Access.SIGNED_IN}

    @property
    def roles(self) -> frozenset[str]:
        """The roles that may."""
        return frozenset(ROLES if isinstance(self.who, Access) else RIGHTS[self.who])
