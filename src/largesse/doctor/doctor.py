"""Runs all checks of `largesse check`. They change nothing."""

from collections.abc import Mapping

from largesse.doctor import machine
from largesse.doctor.checks import CheckResult, Report, ok
from largesse.doctor.database import check_database
from largesse.doctor.settings import doubtful_proxies, doubtful_settings, read_settings, unknown_settings


async def check(environ: Mapping[str, str]) -> Report:
    """Checks the settings in `environ`, the machine, the database and the mail server. Changes and sends nothing.

    Skips checks that depend on a malformed setting.
    """
    settings, malformed = read_settings(environ)
    unread = {finding.setting for finding in malformed}
    findings: list[CheckResult] = [
        *malformed,
        *unknown_settings(environ),
        *(doubt for doubt in doubtful_settings(settings) if doubt.setting not in unread),
        *doubtful_proxies(environ),
    ]
    if not findings:
        findings.append(ok("LARGESSE_…", "Every setting is known, well formed and plausible."))
    if "LARGESSE_DATABASE_URL" not in unread:
        if "LARGESSE_MASTER_KEY" not in unread:
            findings += machine.check_master_key(settings)
        findings += machine.check_data_dir(settings)
        findings += await check_database(settings)
    findings += await machine.check_suppliers(settings, has_database="LARGESSE_DATABASE_URL" not in unread)
    if "LARGESSE_SMTP_URL" not in unread:
        findings += await machine.check_mail_server(settings.smtp_url)
    findings += machine.check_open_files(settings)
    return Report(findings)
