"""Structured logs on standard error: JSON lines, or readable ones for a console."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import msgspec
import structlog

_SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
_encode = msgspec.json.Encoder(enc_hook=repr).encode


class _Logger(structlog.BytesLogger):
    """Writes lines to standard error; knows its name."""

    def __init__(self, name: str = "") -> None:
        super().__init__(sys.stderr.buffer)
        self.name = name


def configure_logs(log_format: str, level: int = logging.INFO) -> None:
    """Sends structlog's and the standard library's logs to standard error; `log_format` is json or console.

    Our own lines do not pass through the standard library: a worker writes thousands a second.
    """
    renderer = _json() if log_format == "json" else _console()
    structlog.configure(
        processors=[*_SHARED, *renderer, _to_bytes],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=_Logger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def _json() -> list[structlog.typing.Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_serialize)]


def _console() -> list[structlog.typing.Processor]:
    return [
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    ]


def _serialize(event: Any, **_: Any) -> str:
    try:
        return _encode(event).decode()
    except (
        UnicodeEncodeError,
        TypeError,
    ):  # half a character, a key that is no text: rare, and worth a line all the same
        return json.dumps(event, default=repr, skipkeys=True)


def _to_bytes(_: Any, __: str, line: Any) -> bytes:
    return str(line).encode(errors="backslashreplace")
