"""Pages and CSV files for people: templates, responses, and how an error becomes a page."""

import asyncio
import csv
import io
import re
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jinja2
import segno
from markupsafe import Markup, escape
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from largesse.base.errors import Problem
from largesse.base.i18n.languages import DEFAULT
from largesse.base.i18n.templates import CATALOGUES, template_environment
from largesse.base.text import plain_text
from largesse.base.timeouts import Timeouts
from largesse.web.kit.problems import problem_of
from largesse.web.kit.query import require_fit_path
from largesse.web.kit.refusal_log import PROBLEM

# Not type="email": that has browsers refuse what people paste, such as `Ada <ada@example.com>`, before `pasted_email` can read it.
_EMAIL_INPUT = Markup('type="text" inputmode="email" autocapitalize="none" spellcheck="false"')
Endpoint = Callable[[Request], Awaitable[Response]]

LONG_TEXT = 32_768  # texts with more characters are sent in parts


class _Whole(IntegerConvertor):
    """Matches `{name:int}` in paths. Python cannot convert thousands of digits, and that error would come before a page's own checks."""

    regex = "[0-9]{1,100}"


register_url_convertor("int", _Whole())


def public_path(public_url: str) -> str:
    """Returns the path of the public address without a final slash; usually empty."""
    return urlsplit(public_url).path.rstrip("/")


def page(html: str, headers: Mapping[str, str], *, status: int = 200) -> Response:
    """Returns a page with its headers (`largesse.web.kit.security`)."""
    return Response(html, status_code=status, media_type="text/html", headers=headers)


class LongTexts:
    """The long texts of a page, such as the megabytes that a person pasted into a refused form. They would take too long to render in one step.

    The template writes a mark in place of each. The marks are replaced while the page is sent, and other requests are answered in between.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}  # the long texts by their marks

    def mark(self, text: str) -> str:
        """Returns what a template writes for a text: its mark if it is long, otherwise the text."""
        if len(text) <= LONG_TEXT:
            return text
        mark = Markup(secrets.token_hex())  # noqa: S704 - hexadecimal
        self._texts[mark] = text
        return mark

    def page(self, html: str, headers: Mapping[str, str], *, status: int = 200) -> Response:
        """Returns the page with its texts."""
        if not self._texts:
            return page(html, headers, status=status)
        return StreamingResponse(self._pieces(html), status_code=status, media_type="text/html", headers=headers)

    async def _pieces(self, html: str) -> AsyncIterator[bytes]:
        # Every other part is a mark.
        for number, part in enumerate(re.split(f"({'|'.join(self._texts)})", html)):
            if number % 2 == 0:
                yield part.encode()
                continue
            text = self._texts[part]
            for at in range(0, len(text), LONG_TEXT):
                await asyncio.sleep(0)
                yield escape(text[at : at + LONG_TEXT]).encode()
        self._texts.clear()


def see(address: str, headers: Mapping[str, str]) -> Response:
    """Redirects to another address (303), as after a posted form."""
    return RedirectResponse(address, status_code=303, headers=headers)


def guarded(
    endpoint: Endpoint,
    timeouts: Timeouts,
    show: Callable[[Request, Problem], Response],
    expected: Mapping[type[Exception], Callable[[Request], Response]],
    *,
    name: str = "",
) -> Endpoint:
    """Returns `endpoint` with errors turned into pages: those `expected` by their own function, all others by `show`.

    The log names the page by `name`, otherwise by its endpoint. Addresses are not logged: they may hold tokens.
    """
    name = name or endpoint.__name__.strip("_")

    async def answer(request: Request) -> Response:
        try:
            with timeouts.wait():
                require_fit_path(request)
                return await endpoint(request)
        except Exception as error:  # noqa: BLE001 - each becomes a page
            request.scope[PROBLEM] = getattr(error, "slug", type(error).__name__)
            if type(error) in expected:
                return expected[type(error)](request)
            problem = problem_of(error, request.scope, page=name, request_id=request.scope["request_id"])
            request.scope[PROBLEM] = problem.slug
            # The traceback holds the frames of the request, with the posted form, and one of them holds the problem.
            return show(request, problem.with_traceback(None))

    return answer


def qr_code(text: str, mask: int | None = None) -> Markup:
    """Returns the QR code of a text as an inline SVG without styles.

    Every mask gives a readable code. Without `mask` the best of eight is chosen, which takes four times as long.
    """
    code = segno.make(text, error="m", micro=False, mask=mask)
    return Markup(  # noqa: S704 - segno writes path data, none of the text
        code.svg_inline(border=2, dark="#000", light="#fff", omitsize=True, svgclass="qr", lineclass=None)
    )


def page_templates(
    folder: Path | tuple[Path, ...],
    language: str = DEFAULT.tag,
    catalogues: Path | tuple[Path, ...] = CATALOGUES,
    **filters: Callable[..., Any],
) -> jinja2.Environment:
    """Returns the templates of a folder in a language, translated by `catalogues`, with further filters.

    Values are escaped, an unknown name in a template is an error, and templates are cached.
    """
    environment = template_environment(folder, language, catalogues)
    environment.filters.update(filters)
    environment.globals["email_input"] = _EMAIL_INPUT
    return environment


async def csv_lines(
    columns: Sequence[str], rows: Iterable[Sequence[object]] | AsyncIterable[Sequence[object]], mark: str
) -> AsyncIterator[str]:
    """Yields the lines of a CSV file, without formulas, with the decimal mark `mark`. Where it is a comma, semicolons separate the cells."""
    # Spreadsheets recognise UTF-8 by the byte order mark.
    yield "\ufeff" + _line(columns, mark)
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield _line(row, mark)
    else:
        for row in rows:
            yield _line(row, mark)


def _line(cells: Sequence[object], mark: str) -> str:
    line = io.StringIO()
    csv.writer(line, delimiter=";" if mark == "," else ",").writerow([_cell(cell, mark) for cell in cells])
    return line.getvalue()


def _cell(cell: object, mark: str) -> object:
    if isinstance(cell, str):
        return plain_text(cell)
    if isinstance(cell, Decimal | float):
        return str(cell).replace(".", mark)
    return "" if cell is None else cell
