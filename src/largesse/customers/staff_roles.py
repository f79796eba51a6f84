"""Members of staff, and the rights of each role. Menus, pages and actions of the back office all use this table."""

from collections.abc import Mapping
from enum import Enum, auto

import msgspec

from largesse.db.scope import OFFICE, Scope

STAFF_ROLES = ("owner", "catalogue", "finance", "warehouse", "support", "auditor")
OWNER = "owner"


class StaffRight(Enum):
    """A right of members of staff."""

    OVERVIEW = auto()  # the first page, and the member's own security
    SEE_CUSTOMERS = auto()
    CUSTOMERS = auto()  # create customers, change their plan, limits and people
    SEE_AS = auto()  # see a customer's pages, without changing anything
    SEE_CATALOGUE = auto()
    CATALOGUE = auto()
    SEE_STOCK = auto()
    STOCK = auto()
    SEE_PARCELS = auto()
    PARCELS = auto()
    SEE_MONEY = auto()
    MONEY = auto()
    SEE_DELIVERIES = auto()
    DELIVERIES = auto()
    FIND = auto()  # find a gift by address, reference, code or tracking number
    SEE_PRIVACY = auto()
    PRIVACY = auto()
    AUDIT = auto()
    STAFF = auto()
    SETTINGS = auto()


def _of(*roles: str) -> frozenset[str]:
    return frozenset((OWNER, *roles))


STAFF_RIGHTS: Mapping[StaffRight, frozenset[str]] = {
    StaffRight.OVERVIEW: frozenset(STAFF_ROLES),
    StaffRight.SEE_CUSTOMERS: _of("catalogue", "finance", "support", "auditor"),
    StaffRight.CUSTOMERS: _of("support"),
    StaffRight.SEE_AS: _of("support"),
    StaffRight.SEE_CATALOGUE: frozenset(STAFF_ROLES),
    StaffRight.CATALOGUE: _of("catalogue"),
    StaffRight.SEE_STOCK: _of("catalogue", "warehouse", "auditor"),
    StaffRight.STOCK: _of("catalogue", "warehouse"),
    StaffRight.SEE_PARCELS: _of("warehouse", "support", "auditor"),
    StaffRight.PARCELS: _of("warehouse"),
    StaffRight.SEE_MONEY: _of("finance", "auditor"),
    StaffRight.MONEY: _of("finance"),
    StaffRight.SEE_DELIVERIES: _of("support", "auditor"),
    StaffRight.DELIVERIES: _of("support"),
    StaffRight.FIND: _of("support", "auditor"),
    StaffRight.SEE_PRIVACY: _of("support", "auditor"),
    StaffRight.PRIVACY: _of("support"),
    StaffRight.AUDIT: _of("auditor"),
    StaffRight.STAFF: _of(),
    StaffRight.SETTINGS: _of(),
}


class StaffMember(msgspec.Struct, frozen=True):
    """A signed-in member of staff, read again for each request."""

    session_id: int
    person_id: int  # the id in `staff`
    email: str
    name: str
    role: str
    is_proved: bool  # whether they confirmed recently who they are

    @property
    def staff_id(self) -> int:
        """The member's id in logs."""
        return self.person_id

    @property
    def scope(self) -> Scope:
        """The scope of a member of staff: the rows of all customers."""
        return OFFICE

    def may(self, right: StaffRight) -> bool:
        """Returns whether the member's role has that right."""
        return self.role in STAFF_RIGHTS[right]
