"""The command `largesse-conformance`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

from largesse_conformance.catalogue import all_checks, codes_of, cost_of
from largesse_conformance.context import Context
from largesse_conformance.http import Caller, Service
from largesse_conformance.outcome import Failed, LimitReached, Result, Skipped, Verdict
from largesse_conformance.report import Report, line, to_html, to_junit, to_text
from largesse_conformance.settings import ACCOUNT, KEYS, RECIPIENT, Settings, UsageError, check_url, read_environment
from largesse_conformance.suite import Check, choose, run_checks
from largesse_conformance.version import __version__

_PASSED, _FAILED, _CANNOT_RUN = 0, 1, 2
_TIDYING_REQUESTS, _TIDYING_S = 200, 60.0


def _parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {variable:34}{whose}" for variable, whose in KEYS.values())
    epilog = (
        f"environment variables:\n{names}\n  {ACCOUNT:34}the id of the funding account to charge\n"
        f"  {RECIPIENT:34}where test gifts are mailed, as name+tag@domain\n\n"
        "exit status: 0 if nothing failed, 1 if a check failed or a limit ended the run, 2 if the suite could not start"
    )
    parser = argparse.ArgumentParser(
        prog="largesse-conformance",
        description="Checks a deployment of Largesse against its contract, from outside.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("url", metavar="URL", nargs="?", help="the address of the API, such as https://gifts.example.com")
    add(
        "--only",
        metavar="PATTERN",
        action="append",
        default=[],
        help="only the checks whose names match, such as 'webhooks.*'",
    )
    add("--list", action="store_true", help="list the checks and their rules, and end")
    add("--plan", action="store_true", help="say what a run would spend, and end")
    add("--production", action="store_true", help="allow keys of the environment production: orders cost real money")
    add("--country", default="GB", help="the country to send to (GB)")
    add("--max-cost", metavar="AMOUNT", default="250", help="order nothing more once orders have cost this much (250)")
    add("--max-requests", metavar="N", type=int, default=2000, help="end after this many requests (2000)")
    add("--time-limit", metavar="SECONDS", type=float, default=600, help="end after this many seconds (600)")
    add(
        "--receiver",
        metavar="HOST:PORT",
        default="127.0.0.1:0",
        help="where to listen for webhooks (127.0.0.1, any port)",
    )
    add("--receiver-url", metavar="URL", help="the public address that leads to the receiver, such as a tunnel's")
    add("--junit", metavar="FILE", type=Path, help="write a report as JUnit XML")
    add("--html", metavar="FILE", type=Path, help="write a report as a web page")
    add("--verbose", action="store_true", help="print each check as it ends")
    add("--version", action="version", version=f"largesse-conformance {__version__}")
    return parser


def read_settings(options: argparse.Namespace) -> Settings:
    """Returns the settings of the command line and the environment. Raises UsageError."""
    if not options.url:
        raise UsageError("URL is missing.")
    host, _, port = options.receiver.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError("--receiver must be a host and a port, such as 127.0.0.1:9000.")
    try:
        max_cost = Decimal(options.max_cost)
    except InvalidOperation as error:
        raise UsageError("--max-cost must be an amount, such as 50.") from error
    if not max_cost.is_finite():
        raise UsageError("--max-cost must be an amount, such as 50.")
    if options.max_requests < 1 or not options.time_limit > 0 or not max_cost >= 0:
        raise UsageError("--max-requests, --time-limit and --max-cost must be above 0.")
    return Settings(
        url=check_url(options.url),
        country=options.country.upper(),
        receiver=options.receiver,
        receiver_url=check_url(options.receiver_url) if options.receiver_url else None,
        max_requests=options.max_requests,
        max_cost=max_cost,
        time_limit_s=options.time_limit,
        is_production_allowed=options.production,
        **read_environment(os.environ),  # type: ignore[arg-type]
    )


def plan(checks: Sequence[Check], context: Context) -> str:
    """Returns what these checks will spend, as a text to read before they run. Raises UsageError if they must not run."""
    try:
        me = context.me()
        if me.get("environment") == "production" and not context.settings.is_production_allowed:
            raise UsageError(
                "The key is for production, where orders cost real money. Use a key for staging, or add --production."
            )
        lines = [
            f"Tests {context.settings.url} as {me.get('customerName')} in {me.get('environment')}: {len(checks)} checks."
        ]
        lines.append(_spending(checks, context))
    except (Failed, LimitReached) as error:
        raise UsageError(f"The suite cannot start: {error}") from error
    return "\n".join(lines)


def _spending(checks: Sequence[Check], context: Context) -> str:
    codes = codes_of(checks)
    if not codes:
        return "It orders nothing."
    try:
        cost, account = cost_of(checks, context), context.account
    except Skipped as skipped:
        return f"It orders nothing. {skipped}"
    payer = f"account {account['id']} ({account['label']})" if account else "invoice"
    return (
        f"It orders at most {codes} codes for {cost} {context.gift().item['currency']} from {payer}, mails some of them to "
        f"{context.settings.address('…')}, and cancels all orders at the end, as far as the service allows it."
    )


def tidy(context: Context) -> list[str]:
    """Ends the subscriptions of a run and cancels its orders; returns a line about those that are left."""
    context.service.allow_more(_TIDYING_REQUESTS, _TIDYING_S)
    orders = [(caller, "POST", f"/orders/{reference}/cancel") for caller, reference in context.placed]
    subscriptions = [(caller, "DELETE", f"/webhooks/{one}") for caller, one in context.subscribed]
    left = []
    for acts, done, what in (
        (orders, 200, "orders could not be cancelled"),
        (subscriptions, 204, "subscriptions could not be ended"),
    ):
        if failed := [one for one in acts if _status_of(*one) != done]:
            left.append(f"{len(failed)} of {len(acts)} {what}.")
    return left


def _status_of(caller: Caller, method: str, path: str) -> int | None:
    try:
        return caller.service.ask(method, path, headers=list(caller.headers)).status
    except (Failed, LimitReached):
        return None


def run(
    settings: Settings, checks: Sequence[Check], *, is_verbose: bool = False, only_plan: bool = False
) -> Report | None:
    """Prints what the run will spend, runs the checks, tidies up, and returns the report. Raises UsageError."""
    service = Service(settings.url, settings.max_requests, settings.time_limit_s)
    context = Context(settings, service)
    started_s, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    try:
        print(plan(checks, context), flush=True)
        if only_plan:
            return None
        results: list[Result] = []
        try:
            for result in run_checks(checks, context):
                results.append(result)
                if is_verbose:
                    print(line(result), flush=True)
        finally:
            left = tidy(context)
        for sentence in left:
            print(sentence)
        return Report(settings.url, __version__, started, time.monotonic() - started_s, service.requests, results)
    finally:
        service.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command, and exits with its status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    checks = choose(all_checks(), options.only)
    if options.list:
        print("\n".join(f"{check.name}: {check.rule}" for check in checks))
        sys.exit(_PASSED)
    if not checks:
        parser.error("no check has a name that matches --only; see --list")
    try:
        report = run(read_settings(options), checks, is_verbose=options.verbose, only_plan=options.plan)
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(_CANNOT_RUN)
    if report is None:
        sys.exit(_PASSED)
    print(to_text(report))
    for path, write in ((options.junit, to_junit), (options.html, to_html)):
        if path is not None:
            path.write_text(write(report), encoding="utf-8")
    sys.exit(_FAILED if report.of(Verdict.FAILED) or report.of(Verdict.UNFINISHED) else _PASSED)


if __name__ == "__main__":
    main()
