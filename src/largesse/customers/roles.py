"""The rights of each role. Menus, pages and actions all use this table."""

from collections.abc import Mapping
from enum import Enum, auto

ROLES = ("admin", "member", "finance", "viewer")


class Right(Enum):
    """A right that a role may have."""

    SEND = auto()  # send, schedule, cancel and resend orders
    SEE_ORDERS = auto()
    READ_CODES = auto()  # read the codes of an order again
    TEMPLATES = auto()  # change templates and own collections
    CONTACTS = auto()  # see and change the people whom the company sends to
    SEE_FUNDS = auto()  # see balances and statements
    SEE_OWED = auto()  # see what an invoiced customer owes
    MOVE_FUNDS = auto()  # request top-ups, export statements
    TRANSFER = auto()  # transfer money between accounts; set who gets a mail about a low balance
    SEE_BUDGETS = auto()  # see what is left of budgets
    SETTINGS = auto()  # change API keys, service accounts, people, webhooks, limits and budgets
    AUDIT = auto()  # read the audit log


class Reach(Enum):
    """The reach of a right: everything of the customer, or only what is the person's own: orders they placed, accounts they may use."""

    ALL = auto()
    OWN = auto()


_ALL, _OWN = Reach.ALL, Reach.OWN

RIGHTS: Mapping[Right, Mapping[str, Reach]] = {
    Right.SEND: {"admin": _ALL, "member": _OWN},
    Right.SEE_ORDERS: {"admin": _ALL, "member": _OWN, "finance": _ALL, "viewer": _ALL},
    Right.READ_CODES: {"admin": _ALL, "member": _OWN},
    Right.TEMPLATES: {"admin": _ALL, "member": _ALL},
    Right.CONTACTS: {"admin": _ALL, "member": _ALL},
    Right.SEE_FUNDS: {"admin": _ALL, "member": _OWN, "finance": _ALL, "viewer": _ALL},
    Right.SEE_OWED: {"admin": _ALL, "finance": _ALL, "viewer": _ALL},
    Right.MOVE_FUNDS: {"admin": _ALL, "member": _OWN, "finance": _ALL},
    Right.TRANSFER: {"admin": _ALL, "finance": _ALL},
    Right.SEE_BUDGETS: {"admin": _ALL, "member": _OWN, "finance": _ALL, "viewer": _ALL},
    Right.SETTINGS: {"admin": _ALL},
    Right.AUDIT: {"admin": _ALL, "finance": _ALL},
}
