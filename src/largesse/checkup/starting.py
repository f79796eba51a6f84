"""What a service says about its settings when it starts: one line of the log for each doubt."""

from __future__ import annotations

import os
from collections.abc import Iterable

import structlog

from largesse.base.settings import Settings
from largesse.checkup.finding import Finding
from largesse.checkup.settings import doubtful_mail_server, doubtful_settings, unknown_settings

_log = structlog.get_logger(__name__)


def warn_of_unknown_settings() -> None:
    """Logs variables that look like settings and are none: before anything can fail for want of one mistyped."""
    _warn_of(unknown_settings(os.environ))


def warn_of_doubtful_settings(settings: Settings, *, delivers: bool) -> None:
    """Logs what is doubtful in production; staging may stand on anybody's own machine.

    A process that delivers has to do with production's mail whichever environment it serves.
    """
    if settings.environment == "production":
        _warn_of(doubtful_settings(settings))
    elif delivers:
        _warn_of(doubtful_mail_server(settings.smtp_url))


def _warn_of(findings: Iterable[Finding]) -> None:
    for finding in findings:
        _log.warning("setting_doubtful", setting=finding.setting, doubt=finding.text)
