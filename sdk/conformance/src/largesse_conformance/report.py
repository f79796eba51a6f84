"""Reports of a run: text for people, JUnit XML for CI, and one HTML page."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from largesse_conformance.outcome import Result, Verdict

_MARKS = {Verdict.PASSED: "pass", Verdict.FAILED: "FAIL", Verdict.SKIPPED: "skip", Verdict.UNFINISHED: "stop"}
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Report:
    """The results of a run, with the address of the service and the time."""

    url: str
    version: str
    started: str
    seconds: float
    requests: int
    results: Sequence[Result]

    def of(self, verdict: Verdict) -> list[Result]:
        """Returns the results with a verdict."""
        return [result for result in self.results if result.verdict is verdict]

    @property
    def summary(self) -> str:
        """Returns the counts in one line."""
        counts = Counter(result.verdict for result in self.results)
        shown = [verdict for verdict in Verdict if verdict is not Verdict.UNFINISHED or counts[verdict]]
        named = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in shown)
        return f"{named} in {self.seconds:.1f} s with {self.requests} requests"


def line(result: Result) -> str:
    """Returns one result as a line of text, with the reason on the next line if it did not pass."""
    shown = f"{_MARKS[result.verdict]}  {result.name}: {result.rule}"
    return f"{shown}\n      {result.reason}" if result.reason else shown


def to_text(report: Report) -> str:
    """Returns the failures, the reasons of skipped checks, and the counts as text."""
    parts = [line(result) for result in report.of(Verdict.FAILED)]
    for verdict in (Verdict.SKIPPED, Verdict.UNFINISHED):
        reasons = Counter(result.reason for result in report.of(verdict))
        for reason, count in reasons.items():
            parts.append(f"{_MARKS[verdict]}  {count} {'checks' if count > 1 else 'check'}: {reason}")
    return "\n".join([*parts, report.summary])


def to_junit(report: Report) -> str:
    """Returns the report as JUnit XML, one test suite for each area."""
    root = ET.Element("testsuites", {"name": "largesse-conformance"} | _counts(report.results))
    for area in dict.fromkeys(result.area for result in report.results):
        results = [result for result in report.results if result.area == area]
        suite = ET.SubElement(root, "testsuite", {"name": area, "timestamp": report.started} | _counts(results))
        for result in results:
            case = ET.SubElement(
                suite, "testcase", classname=f"conformance.{area}", name=result.name, time=f"{result.seconds:.3f}"
            )
            if result.verdict is Verdict.FAILED:
                ET.SubElement(case, "failure", message=_printable(result.rule)).text = _printable(result.reason)
            if result.verdict is Verdict.UNFINISHED:
                ET.SubElement(case, "error", message=_printable(result.reason))
            if result.verdict is Verdict.SKIPPED:
                ET.SubElement(case, "skipped", message=_printable(result.reason))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counts(results: Sequence[Result]) -> dict[str, str]:
    verdicts = Counter(result.verdict for result in results)
    return {
        "tests": str(len(results)),
        "failures": str(verdicts[Verdict.FAILED]),
        "skipped": str(verdicts[Verdict.SKIPPED]),
        "errors": str(verdicts[Verdict.UNFINISHED]),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }


def _printable(text: str) -> str:
    return _NOT_XML.sub("�", text)


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Conformance of {url}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 64rem; overflow-wrap: anywhere; padding: 1rem; }}
h1 {{ font-size: 1.5rem; }} h2 {{ font-size: 1.125rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; table-layout: fixed; width: 100%; }}
th, td {{ border-bottom: 1px solid #8884; padding: .375rem .5rem; text-align: start; vertical-align: top; }}
th:first-child {{ width: 5.5rem; }}
.failed, .unfinished {{ color: light-dark(#a40000, #ff9a9a); font-weight: 600; }}
.skipped {{ color: light-dark(#595959, #b0b0b0); }}
code {{ font-size: .875em; }}
</style>
</head>
<body>
<h1>Conformance of {url}</h1>
<p>{summary}. Started {started}, with largesse-conformance {version}.</p>
{areas}
</body>
</html>
"""


def to_html(report: Report) -> str:
    """Returns the report as a single HTML page that loads nothing else."""
    areas = []
    for area in dict.fromkeys(result.area for result in report.results):
        rows = "\n".join(_row(result) for result in report.results if result.area == area)
        title = html.escape(area.capitalize())
        areas.append(f"<h2>{title}</h2>\n<table>\n<tr><th>Result</th><th>Rule</th></tr>\n{rows}\n</table>")
    return _PAGE.format(
        url=html.escape(report.url),
        summary=report.summary,
        started=report.started,
        version=html.escape(report.version),
        areas="\n".join(areas),
    )


def _row(result: Result) -> str:
    reason = f"<br>{html.escape(result.reason)}" if result.reason else ""
    name = html.escape(result.name)
    kind = result.verdict.value
    return f'<tr><td class="{kind}">{kind}</td><td>{html.escape(result.rule)}<br><code>{name}</code><span class="{kind}">{reason}</span></td></tr>'
