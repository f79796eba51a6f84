"""The types of the table of routes, and the parameters that an address may have. Pages read no other parameters."""

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from typing import Any

import msgspec
from starlette.responses import Response

from largesse.base.i18n.languages import text
from largesse.customers.roles import RIGHTS, ROLES, Right
from largesse.customers.staff_roles import STAFF_RIGHTS, StaffRight
from largesse.web.kit.body import BodyLimits
from largesse.web.kit.forms import FORM_LIMITS
from largesse.web.kit.query import INT64, Day, Kind, Line, Month, Whole


class Access(Enum):
    """Who may call a route that needs no right of a role."""

    ANYONE = auto()  # signed in or not
    ENTERING = auto()  # signed in, also between the password and the second step
    SIGNED_IN = auto()  # signed in, also before a customer is chosen
    MEMBER = auto()  # any role at the chosen customer


class Group(Enum):
    """The groups of the menu, in order, and their names."""

    GIFTS = text("Gifts")
    MONEY = text("Money")
    SETUP = text("Settings")


class PageRoute(msgspec.Struct, frozen=True):
    """A path of the web application or the back office with a method, its handler, and who may call it.

    `title` is the name of the page. With a `group` the menu shows it, and it needs an `icon` (`web/kit/assets.py`). `limits` and `most_fields`
    bound a posted form.
    `before_reading` is called after the token is checked. It can refuse a large form before its body is read.
    """

    method: str
    path: str
    handler: Callable[[Any], Awaitable[Response]]  # takes a RequestContext
    who: Right | StaffRight | Access
    title: str | None = None
    group: Enum | None = None
    icon: str = ""
    limits: BodyLimits = FORM_LIMITS
    most_fields: int = 40
    before_second_step: bool = False  # also for a person who must first set up a second step
    takes_files: bool = False  # the route's form may upload files, which are in `context.files`
    before_reading: Callable[[Any], Awaitable[object]] | None = None  # takes a RequestContext
    step_up: bool = False  # its form requires that the person recently confirmed who they are

    def __post_init__(self) -> None:
        if self.group is not None and not (self.title and self.icon):
            raise ValueError(f"{self.path} is in the menu, so its route needs a title and an icon")

    @property
    def is_of_customer(self) -> bool:
        """Whether the route is about the chosen customer, or in the back office for members of staff."""
        return self.who not in {Access.ANYONE, Access.ENTERING, Access.SIGNED_IN}

    @property
    def roles(self) -> frozenset[str]:
        """The roles that may call the route."""
        if isinstance(self.who, StaffRight):
            return STAFF_RIGHTS[self.who]
        return frozenset(ROLES if isinstance(self.who, Access) else RIGHTS[self.who])


# The page of the documentation about a page of the menu and the pages below it, by its path.
GUIDES: Mapping[str, str] = {
    "/app/contacts": "guide-programmes.html#contacts",
    "/app/orders": "guide-sender.html#follow-an-order",
    "/app/automations": "guide-programmes.html#automations",
    "/app/campaigns": "guide-programmes.html#campaigns",
    "/app/notes": "guide-programmes.html#thank-you-notes",
    "/app/approvals": "guide-programmes.html#approvals",
    "/app/funding": "guide-money.html",
    "/app/budgets": "guide-money.html#budgets",
    "/app/reports": "guide-money.html#reports",
    "/app/unclaimed": "guide-programmes.html#unclaimed-gifts",
    "/app/branding": "guide-branding.html",
}

_CODE, _ID, _WORD, _NAME = Line(8), Line(20), Line(40), Line(200)

PARAMETERS: Mapping[str, Kind] = {
    # Pages and filters of lists
    "before": Whole(INT64),
    "after": Whole(INT64),
    "page": Whole(999),
    "from": Whole(),
    "group": Whole(),
    "account": Whole(),
    "since": Day(),
    "until": Day(),
    "month": Month(),
    "key": Whole(),
    "path": _NAME,
    "q": _NAME,
    "after_key": Line(100),
    "request": Line(64),
    "who": Line(100),
    **dict.fromkeys(("act", "by", "edit", "gift", "method", "of", "period"), _WORD),
    **dict.fromkeys(("role", "sort", "source", "state", "status", "tab", "was"), _WORD),
    "order": Line(20),  # appears once for each selected order
    # The subject of a form, and its values so far
    **dict.fromkeys(("collection", "copy", "product", "template", "to"), _ID),
    **dict.fromkeys(("amount", "amount_minor", "draft", "kind", "value"), _WORD),
    **dict.fromkeys(("country", "currency", "lang"), _CODE),
    "name": _NAME,
    **dict.fromkeys(("above", "approver", "beyond_budget", "days", "needed"), _WORD),
    # The page to continue to
    "next": Line(2_000),
    "was_name": _NAME,
    "was_product": Line(2_000),  # all products that a collection had
}
