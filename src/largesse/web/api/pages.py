"""The pages beside the API: the reference, the problems explained, the OpenAPI document, the landing page.

Each is rendered once and kept. They run no script and load nothing from elsewhere, and their policy forbids both.
"""

from __future__ import annotations

import json
from functools import cache
from http import HTTPStatus

import jinja2
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from largesse import __version__
from largesse.base.errors import NotFound
from largesse.web.api.openapi import build_document, example_problem
from largesse.web.api.openapi_events import build_events_document
from largesse.web.api.reference import prose, read_sections, read_tables
from largesse.web.api.routes import OPERATIONS
from largesse.web.kit.problems import PROBLEMS, ProblemType
from largesse.web.kit.replies import encode_json

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "public, max-age=300",
}

_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("largesse.web.api", "html"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters["prose"] = prose


async def _landing(request: Request) -> Response:
    return _page(_render("landing.html", version=__version__, has_mailbox=request.app.has_page("/mailbox")))


async def _reference(request: Request) -> Response:
    return _page(_reference_html(request.app.services.settings.public_url))


async def _problems(request: Request) -> Response:
    return _page(_render("problems.html", here="problems", problems=PROBLEMS))


async def _problem(request: Request) -> Response:
    html = _problem_pages().get(request.path_params["slug"])
    if html is None:
        raise NotFound("There is no problem of that name; /problems lists them.")
    return _page(html)


async def _openapi(request: Request) -> Response:
    return Response(_document_json(), media_type="application/json", headers=_HEADERS)


async def _openapi_events(request: Request) -> Response:
    return Response(_events_document_json(), media_type="application/json", headers=_HEADERS)


async def _style(request: Request) -> Response:
    return Response(_source("style.css"), media_type="text/css", headers=_HEADERS)


async def _icon(request: Request) -> Response:
    return Response(_source("icon.svg"), media_type="image/svg+xml", headers=_HEADERS)


def _page(html: str) -> Response:
    return Response(html, media_type="text/html", headers=_HEADERS)


@cache
def _document_json() -> bytes:
    return encode_json(build_document(OPERATIONS))


@cache
def _events_document_json() -> bytes:
    return encode_json(build_events_document())


@cache
def _reference_html(base_url: str) -> str:
    document = build_document(OPERATIONS)
    tables = read_tables(document)
    return _render(
        "reference.html",
        here="docs",
        version=__version__,
        base_url=base_url,
        introduction=[prose(text) for text in document["info"]["description"].strip().split("\n")],
        sections=read_sections(document, base_url),
        tables=tables,
        table_of={table.name: table for table in tables},
        event=build_events_document()["webhooks"]["order.created"]["post"],
    )


@cache
def _problem_pages() -> dict[str, str]:
    """The page of each problem, by slug."""
    return {problem.slug: _render_problem(problem) for problem in PROBLEMS}


def _render_problem(problem: ProblemType) -> str:
    return _render(
        "problem.html",
        here="problems",
        problem=problem,
        phrase=HTTPStatus(problem.status).phrase,
        example=json.dumps(example_problem(problem), indent=2, ensure_ascii=False),
        operations=[operation for operation in OPERATIONS if problem in operation.all_problems],
    )


@cache
def _source(name: str) -> str:
    assert _templates.loader is not None
    return _templates.loader.get_source(_templates, name)[0]


def _render(name: str, *, here: str = "", **values: object) -> str:
    return _templates.get_template(name).render(here=here, **values)


PAGES = [
    Route("/", _landing),
    Route("/docs", _reference),
    Route("/docs/style.css", _style),
    Route("/docs/icon.svg", _icon),
    Route("/openapi.json", _openapi),
    Route("/openapi-events.json", _openapi_events),
    Route("/problems", _problems),
    Route("/problems/{slug}", _problem),
]
