"""Structured logs on standard error: JSON lines, or readable ones for a console."""

import json
import logging
import sys
import threading
from functools import partial
from typing import Any

import msgspec
import structlog
from prometheus_client import Counter

from largesse.base import clock

_SHARED: list[structlog.typing.Processor] = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
_encode = msgspec.json.Encoder(enc_hook=repr).encode


# An outage repeats these many times a second. Each is written once a minute for the same error and loop.
REPEATED = frozenset(
    {
        "automations.waiting",
        "database_away",
        "last_seen_not_written",
        "mail.server_away",
        "orphans_not_ended",
        "outbox.not_listening",
        "outbox.written_again",
        "requests_not_logged",
        "sealing_not_told",
        "worker.database_trouble",
    }
)
_AGAIN_AFTER_S = 60.0
_REMEMBERED = 1_000

LINES_LOST = Counter("largesse_log_lines_lost", "Lines of the log that could not be written.")


class _Output:
    """Writes whole lines to standard error. A line that cannot be written is lost and counted; nothing else fails.

    Nothing is buffered: a buffered line that a full disk refused would be written again at exit, and change the exit status.
    """

    def __init__(self) -> None:
        buffer = getattr(sys.stderr, "buffer", None)
        self._raw = getattr(buffer, "raw", buffer)  # None: standard error was closed from the start
        self._lock = threading.Lock()
        self._lost = 0  # lines lost since the last one that was written
        self._is_broken = False  # the last line was written in part

    def write(self, line: bytes) -> None:
        """Writes a line that ends in a line break. If lines before it were lost, logs how many."""
        with self._lock:
            lost, self._lost = self._lost, 0
            if not self._try(line):
                self._lost = lost + 1
                LINES_LOST.inc()
                return
        if lost:
            structlog.get_logger(__name__).warning("log.lines_lost", lines=lost)

    def _try(self, line: bytes) -> bool:
        rest = b"\n" + line if self._is_broken else line
        try:
            while rest:
                written = self._raw.write(rest) if self._raw is not None else None
                if not written:
                    return False
                self._is_broken = not rest[:written].endswith(b"\n")
                rest = rest[written:]
        except (OSError, ValueError):  # the disk is full, or the output is gone or closed
            return False
        return True


class Repeats:
    """Drops lines of REPEATED that were written less than a minute ago. The next one says in `not_logged_before` how many."""

    def __init__(self, now_s: clock.Seconds = clock.passed_s) -> None:
        self._now_s = now_s
        self._written: dict[tuple[object, ...], tuple[float, int]] = {}  # when, and how many were dropped since

    def __call__(self, _: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        """Returns the line. Raises structlog.DropEvent."""
        if event.get("event") not in REPEATED:
            return event
        line, now_s = (event["event"], event.get("error"), event.get("loop")), self._now_s()
        at_s, dropped = self._written.pop(line, (now_s - _AGAIN_AFTER_S, 0))
        if now_s - at_s < _AGAIN_AFTER_S:
            self._written[line] = at_s, dropped + 1
            raise structlog.DropEvent
        self._written[line] = now_s, 0
        if len(self._written) > _REMEMBERED:
            del self._written[next(iter(self._written))]
        return {**event, "not_logged_before": dropped} if dropped else event


class _Logger:
    """Writes the lines of our own loggers."""

    def __init__(self, output: _Output, name: str = "") -> None:
        self._output = output
        self.name = name

    def msg(self, line: bytes) -> None:
        self._output.write(line + b"\n")

    debug = info = warning = error = critical = msg


class _Handler(logging.Handler):
    """Writes the lines of the standard library's loggers."""

    def __init__(self, output: _Output) -> None:
        super().__init__()
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = _to_bytes(None, "", self.format(record)) + b"\n"
        except Exception:  # noqa: BLE001 - as every handler does with a record that cannot be shown
            self.handleError(record)
        else:
            self._output.write(line)


def configure_logs(log_format: str, level: int = logging.INFO) -> None:
    """Sends structlog's and the standard library's logs to standard error. `log_format` is json or console.

    Our own lines do not pass through the standard library: a worker writes thousands a second.
    """
    output = _Output()
    is_json = log_format == "json"
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    renderer = [structlog.processors.format_exc_info, _to_json] if is_json else [console]
    structlog.configure(
        processors=[Repeats(), *([_in_one_step] if is_json else [*_SHARED, *renderer, _to_bytes])],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=partial(_Logger, output),
        cache_logger_on_first_use=True,
    )
    handler = _Handler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def _in_one_step(logger: _Logger, level: str, event: structlog.typing.EventDict) -> bytes:
    """Returns a line of JSON. Does the work of several processors in one call, which is quicker."""
    if "exc_info" in event:
        event = structlog.processors.format_exc_info(logger, level, event)
    event["level"] = level
    event["logger"] = logger.name
    event["timestamp"] = f"{clock.now().isoformat()[:-6]}Z"
    return _encoded(event)


def _encoded(event: structlog.typing.EventDict) -> bytes:
    try:
        return _encode(event)
    except (UnicodeEncodeError, TypeError):  # a lone surrogate, or a key that is not a text
        return json.dumps(event, default=repr, skipkeys=True).encode()


def _to_json(_: Any, __: str, event: structlog.typing.EventDict) -> str:
    return _encoded(event).decode()


def _to_bytes(_: Any, __: str, line: Any) -> bytes:
    return str(line).encode(errors="backslashreplace")
