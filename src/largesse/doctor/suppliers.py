"""Checks the descriptions of suppliers, without calling any: files, secrets, and the products that name suppliers."""

from __future__ import annotations

from largesse.base.errors import OperatorError
from largesse.base.settings import Settings
from largesse.catalogue.model import STOCK
from largesse.db.pool import DATABASE_FAILED
from largesse.db.scope import OPERATOR
from largesse.doctor.checks import CheckResult, error, ok, warning
from largesse.installation import open_database
from largesse.suppliers.description import read_descriptions
from largesse.suppliers.service import opened
from largesse.suppliers.store import list_naming

_SETTING = "LARGESSE_SUPPLIERS"
_FAILED: tuple[type[BaseException], ...] = (OperatorError, *DATABASE_FAILED)


async def check_suppliers(settings: Settings) -> list[CheckResult]:
    """Opens each supplier of the setting, and names the products whose suppliers are not described."""
    findings: list[CheckResult] = []
    names = {STOCK}
    try:
        for description in read_descriptions(settings.suppliers):
            names.add(description.name)
            async with opened(description):
                findings.append(
                    ok(_SETTING, f"The supplier {description.name} is described, and its secrets are there.")
                )
    except OperatorError as wrong:
        return [*findings, error(_SETTING, f"{wrong}.")]
    if settings.database_url is None:
        return findings
    try:
        async with open_database(settings) as database, database.connection(OPERATOR) as connection:
            naming = await list_naming(connection)
    except _FAILED:
        return findings  # other checks say what is wrong with the database
    missing = sorted({name for row in naming for name in row["suppliers"]} - names)
    if missing:
        findings.append(
            warning(
                _SETTING,
                f"Products name suppliers that no file describes: {', '.join(missing)}. Their gifts wait until one does.",
            )
        )
    return findings
