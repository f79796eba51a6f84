"""What each role may do, said once more: the table of the code is not what it is held against."""

from largesse.customers.roles import RIGHTS, ROLES, Reach, Right

# Right: admin, member, finance, viewer. A: all of the customer's, o: one's own, -: nothing.
EXPECTED = {
    Right.SEND: "Ao--",
    Right.SEE_ORDERS: "AoAA",
    Right.READ_CODES: "Ao--",
    Right.TEMPLATES: "AA--",
    Right.CONTACTS: "AA--",
    Right.SEE_FUNDS: "AoAA",
    Right.SEE_OWED: "A-AA",
    Right.MOVE_FUNDS: "AoA-",
    Right.TRANSFER: "A-A-",
    Right.SEE_BUDGETS: "AoAA",
    Right.SETTINGS: "A---",
    Right.AUDIT: "A-A-",
}
SIGNS = {Reach.ALL: "A", Reach.OWN: "o", None: "-"}


def test_each_role_has_its_rights_and_no_other() -> None:
    assert ROLES == ("admin", "member", "finance", "viewer")
    assert set(RIGHTS) == set(Right)
    assert {right: "".join(SIGNS[reaches.get(role)] for role in ROLES) for right, reaches in RIGHTS.items()} == EXPECTED
    assert all(set(reaches) <= set(ROLES) for reaches in RIGHTS.values())
