"""The addresses of a send, for who may send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.drafts.sheet import MAX_FILE_BYTES
from largesse.people.roles import Right
from largesse.web.console.send import delivery, gift, mending, message, recipients, review, sent
from largesse.web.console.send.opening import open_draft
from largesse.web.console.table import Entry, Group
from largesse.web.kit.body import BodyLimits

_TITLE = text("Send a gift")
_DRAFT = "/app/send/{draft}"
# What is somewhat too large is read, so that it can be said beside the form.
_OF_ROWS = BodyLimits(2 * MAX_FILE_BYTES, whole_s=60.0, pause_s=15.0)
_OF_MENDED = BodyLimits(1024 * 1024, whole_s=30.0, pause_s=15.0)


def _page(path: str, handler: Callable[[Any], Awaitable[Response]], group: Group | None = None) -> Entry:
    return Entry("GET", path, handler, Right.SEND, _TITLE, group)


def _form(path: str, handler: Callable[[Any], Awaitable[Response]], **more: Any) -> Entry:
    return Entry("POST", path, handler, Right.SEND, _TITLE, **more)


def _large_form(path: str, handler: Callable[[Any], Awaitable[Response]], **more: Any) -> Entry:
    """One that is read for whom the draft is of alone."""
    return _form(path, handler, before_reading=open_draft, **more)


SEND = (
    _page("/app/send", gift.choose, Group.GIFTS),
    _page("/app/send/gift", gift.amount),
    _form("/app/send/gift", gift.take),
    _form(f"{_DRAFT}/drop", gift.drop),
    _page(f"{_DRAFT}/recipients", recipients.show),
    _large_form(f"{_DRAFT}/recipients", recipients.take_typed, limits=_OF_ROWS, takes_files=True),
    _large_form(f"{_DRAFT}/file", recipients.take_file, limits=_OF_ROWS, takes_files=True),
    _form(f"{_DRAFT}/codes", recipients.take_quantity),
    _form(f"{_DRAFT}/columns", recipients.take_columns),
    _form(f"{_DRAFT}/start-over", recipients.start_over),
    _large_form(f"{_DRAFT}/rows", mending.mend, limits=_OF_MENDED, most_fields=5 * recipients.MENDED_AT_ONCE),
    _form(f"{_DRAFT}/leave-out", mending.leave_out),
    _page(f"{_DRAFT}/bad-rows.csv", mending.bad_rows),
    _page(f"{_DRAFT}/message", message.write),
    _form(f"{_DRAFT}/message", message.take),
    _page(f"{_DRAFT}/mail", message.mail),
    _page(f"{_DRAFT}/claim", message.claim),
    _page(f"{_DRAFT}/delivery", delivery.show),
    _form(f"{_DRAFT}/delivery", delivery.take),
    _page(f"{_DRAFT}/review", review.show),
    _form(f"{_DRAFT}/place", review.place),
    _page(f"{_DRAFT}/sent", sent.show),
    _page(f"{_DRAFT}/codes", sent.codes),
    _page(f"{_DRAFT}/codes.csv", sent.codes_file),
    _form(f"{_DRAFT}/again", sent.again),
    Entry("POST", f"{_DRAFT}/template", sent.save_template, Right.TEMPLATES, _TITLE),
)
