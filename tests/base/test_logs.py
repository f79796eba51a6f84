"""The log as an operator's tools read it: one JSON object a line on standard error, whatever is said. Records with secrets show none."""

import json
import subprocess
import sys

import pytest
import structlog

from largesse.base.logs import Repeats
from largesse.lines.codes import DrawnCode
from largesse.mail.letter import LetterCode
from largesse.suppliers.model import Bought
from largesse.webhooks.store import RotatedSecret

SAYS = """
import logging, uuid, structlog
from largesse.base.logs import configure_logs
configure_logs({log_format!r}, logging.{level})
log = structlog.get_logger("largesse.test")
log.debug("detail")
log.info("plain", number=1, nothing=None, text="zwölf")
for _ in range(3):
    log.info("database_away")
log.warning("odd", half="\\ud800", raw=b"x", id=uuid.UUID(int=1), thing={{1, 2}})
try:
    1 / 0
except ZeroDivisionError:
    log.exception("broke", order_id=7)
    logging.getLogger("uvicorn").exception("theirs %s", 1)
"""


def logged(log_format: str, level: str = "INFO") -> str:
    says = SAYS.format(log_format=log_format, level=level)
    done = subprocess.run([sys.executable, "-c", says], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
    return done.stderr


def test_json_is_one_object_a_line() -> None:
    plain, away, odd, broke, theirs = (json.loads(line) for line in logged("json").splitlines())
    assert (plain["event"], plain["level"], plain["logger"]) == ("plain", "info", "largesse.test")
    assert (plain["number"], plain["nothing"], plain["text"]) == (1, None, "zwölf")
    assert plain["timestamp"].endswith("Z")
    assert (away["event"], odd["event"]) == ("database_away", "odd")
    assert odd["half"] == "\ud800"
    assert (broke["event"], broke["level"], broke["order_id"]) == ("broke", "error", 7)
    assert "ZeroDivisionError" in broke["exception"]
    assert (theirs["event"], theirs["logger"]) == ("theirs 1", "uvicorn")
    assert "ZeroDivisionError" in theirs["exception"]


@pytest.mark.parametrize(("level", "count"), [("DEBUG", 6), ("INFO", 5), ("WARNING", 3), ("ERROR", 2)])
def test_a_level_leaves_out_what_is_below(level: str, count: int) -> None:
    assert len(logged("json", level).splitlines()) == count


def test_an_outage_is_a_line_a_minute_for_each_error_and_loop() -> None:
    now_s = [0.0]
    repeats = Repeats(lambda: now_s[0])

    def write(event: str, **members: object) -> object:
        try:
            return repeats(None, "warning", {"event": event, **members}).get("not_logged_before", "written")
        except structlog.DropEvent:
            return "dropped"

    away = {"event": "worker.database_trouble", "error": "OSError", "loop": "prune"}
    assert [write(**away), write(**away), write(**{**away, "loop": "mail"})] == ["written", "dropped", "written"]
    assert write(**{**away, "error": "DeadlockDetectedError"}) == "written"
    assert [write("mail.message"), write("mail.message")] == ["written", "written"]
    now_s[0] = 59.9
    assert write(**away) == "dropped"
    now_s[0] = 60.0
    assert [write(**away), write(**away)] == [2, "dropped"]


def test_the_console_is_for_people() -> None:
    lines = logged("console")
    assert lines.count("database_away") == 1
    for said in ("plain", "number=1", "odd", "broke", "theirs 1", "ZeroDivisionError", "[largesse.test]"):
        assert said in lines


@pytest.mark.parametrize("shown", [repr, str, "{!r}".format, "{}".format])
@pytest.mark.parametrize("kind", [DrawnCode, LetterCode, Bought, RotatedSecret])
def test_secrets_are_in_no_repr(kind: type, shown) -> None:
    record = kind(*("hidden" for _ in kind.__struct_fields__))
    assert "hidden" not in shown(record)
    assert kind.__name__ in shown(record)
    assert record.__rich_repr__() == []
