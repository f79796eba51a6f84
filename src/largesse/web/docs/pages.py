"""The pages beside the API: the reference, the problems explained, the OpenAPI documents, the landing page.

Each is rendered once and kept. They run no script and load nothing from elsewhere, and their policy forbids both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from largesse import __version__
from largesse.base.errors import NotFound
from largesse.base.settings import Settings
from largesse.web.api.openapi.document import build_document, build_events_document
from largesse.web.api.openapi.parts import example_problem
from largesse.web.api.routes import OPERATIONS
from largesse.web.docs.reference import prose, read_sections, read_tables
from largesse.web.kit.assets import Assets
from largesse.web.kit.pages import page
from largesse.web.kit.problems import PROBLEMS, ProblemType
from largesse.web.kit.replies import encode_json
from largesse.web.kit.security import content_policy, page_headers
from largesse.web.kit.templates import page_templates

_FOLDER = Path(__file__).parent
_HEADERS = page_headers(content_policy(style_src="'self'", img_src="'self'"), max_age_s=300)


def docs_pages(settings: Settings, *, has_mailbox: bool = False) -> Sequence[BaseRoute]:
    """The routes of the pages; samples call the public address, and `has_mailbox` links to captured mail."""
    return _Pages(settings, has_mailbox=has_mailbox).routes()


class _Pages:
    def __init__(self, settings: Settings, *, has_mailbox: bool) -> None:
        self._public_url = settings.public_url
        self._has_mailbox = has_mailbox
        self._assets = Assets(_FOLDER / "assets", "/docs", _HEADERS)
        self._templates = page_templates(_FOLDER / "templates", prose=prose)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self._landing),
            Route("/docs", self._reference),
            *self._assets.routes(),
            Route("/openapi.json", self._openapi),
            Route("/openapi-events.json", self._openapi_events),
            Route("/problems", self._problems),
            Route("/problems/{slug}", self._problem),
        ]

    async def _landing(self, _: Request) -> Response:
        return page(self._landing_html, _HEADERS)

    async def _reference(self, _: Request) -> Response:
        return page(self._reference_html, _HEADERS)

    async def _problems(self, _: Request) -> Response:
        return page(self._problems_html, _HEADERS)

    async def _problem(self, request: Request) -> Response:
        html = self._problem_html.get(request.path_params["slug"])
        if html is None:
            raise NotFound("There is no problem of that name; /problems lists them.")
        return page(html, _HEADERS)

    async def _openapi(self, _: Request) -> Response:
        return Response(self._document, media_type="application/json", headers=_HEADERS)

    async def _openapi_events(self, _: Request) -> Response:
        return Response(self._events_document, media_type="application/json", headers=_HEADERS)

    @cached_property
    def _document(self) -> bytes:
        return encode_json(build_document(OPERATIONS))

    @cached_property
    def _events_document(self) -> bytes:
        return encode_json(build_events_document())

    @cached_property
    def _landing_html(self) -> str:
        return self._render("landing.html", version=__version__, has_mailbox=self._has_mailbox)

    @cached_property
    def _problems_html(self) -> str:
        return self._render("problems.html", here="problems", problems=PROBLEMS)

    @cached_property
    def _problem_html(self) -> dict[str, str]:
        """The page of each problem, by slug."""
        return {problem.slug: self._render_problem(problem) for problem in PROBLEMS}

    @cached_property
    def _reference_html(self) -> str:
        document = build_document(OPERATIONS)
        events = build_events_document()
        tables = read_tables(document)
        tables += [table for table in read_tables(events) if table.name not in document["components"]["schemas"]]
        return self._render(
            "reference.html",
            here="docs",
            version=__version__,
            base_url=self._public_url,
            introduction=[prose(text) for text in document["info"]["description"].strip().split("\n")],
            sections=read_sections(document, self._public_url),
            tables=tables,
            table_of={table.name: table for table in tables},
            events={name: methods["post"] for name, methods in events["webhooks"].items()},
        )

    def _render_problem(self, problem: ProblemType) -> str:
        return self._render(
            "problem.html",
            here="problems",
            problem=problem,
            phrase=HTTPStatus(problem.status).phrase,
            example=json.dumps(example_problem(problem), indent=2, ensure_ascii=False),
            operations=[operation for operation in OPERATIONS if problem in operation.all_problems],
        )

    def _render(self, name: str, *, here: str = "", **values: object) -> str:
        asset: Callable[[str], str] = self._assets.address_of
        return self._templates.get_template(name).render(here=here, asset=asset, **values)
