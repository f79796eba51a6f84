"""The privileges for GRANT and REVOKE that follow from the tables of rights (`rights`, `office_rights`)."""

from collections.abc import Iterator

import msgspec

from largesse.db.office_rights import NOT_OF_OFFICE, OF_STAFF, READ_STAFF, SHOWN_TO_OFFICE
from largesse.db.rights import FUNCTIONS, FUNCTIONS_OF_CLUSTER, SHOWN, TABLES, Writes
from largesse.db.roles import ACTING, Role


class Right(msgspec.Struct, frozen=True, order=True):
    """One privilege of a role, or of everybody (`PUBLIC`), on an object."""

    kind: str  # as in GRANT: TABLE, SEQUENCE or FUNCTION
    name: str  # a function's name includes its arguments
    column: str  # the column of a privilege on one column; otherwise empty
    grantee: str
    privilege: str

    @property
    def grant(self) -> str:
        """The statement that grants the privilege."""
        return f"GRANT {self._what} TO {self.grantee}"

    @property
    def revoke(self) -> str:
        """The statement that revokes the privilege."""
        return f"REVOKE {self._what} FROM {self.grantee}"

    @property
    def _what(self) -> str:
        column = f" ({self.column})" if self.column else ""
        return f"{self.privilege}{column} ON {self.kind} {self.name}"


def rights_on(kind: str, name: str) -> Iterator[Right]:
    """Yields the rights of all roles on an object. The tables of rights need not list it."""
    if kind == "TABLE":
        for role in ACTING:
            for privilege in (*_reads(name, role), *TABLES.get(name, Writes()).of(role)):
                verb, _, column = privilege.rstrip(")").partition("(")
                yield Right(kind, name, column, role, verb)
    elif kind == "SEQUENCE":
        for role in ACTING:
            yield Right(kind, name, "", role, "SELECT")
            if role is not Role.READ:
                yield Right(kind, name, "", role, "USAGE")
    else:
        for role in {**FUNCTIONS, **FUNCTIONS_OF_CLUSTER}.get(name.partition("(")[0], ()):
            yield Right(kind, name, "", role, "EXECUTE")


def _reads(table: str, role: Role) -> tuple[str, ...]:
    if (role is Role.OFFICE and table in NOT_OF_OFFICE) or (table in OF_STAFF and role not in READ_STAFF):
        return ()
    shown = SHOWN.get(table) or (SHOWN_TO_OFFICE.get(table) if role is Role.OFFICE else None)
    if role is Role.OPERATOR or shown is None:
        return ("SELECT",)
    return tuple(f"SELECT({column})" for column in shown)
