"""What is doubtful about a configuration: a few lines at start, and all that can be looked at with `largesse check`.

`checks` goes through everything in order: `settings`, `machine` (data directory and open files), `master_key`, `database` with its
`roles`, and `mail_server`. Each says what it sees as a `Finding` of `finding`, and changes nothing. `starting` is what a service logs of it
when it starts.
"""

from largesse.checkup.checks import check
from largesse.checkup.finding import Finding, Level, Report
from largesse.checkup.starting import warn_of_doubtful_settings, warn_of_unknown_settings

__all__ = ["Finding", "Level", "Report", "check", "warn_of_doubtful_settings", "warn_of_unknown_settings"]
