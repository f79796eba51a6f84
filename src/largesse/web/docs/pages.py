"""The pages beside the API: the landing page, the reference, the problems, and the OpenAPI documents.

Each page is rendered once, the landing page once in each language; the others are in English. Pages run no scripts and load nothing from other sites; their policy forbids both.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from largesse import __version__
from largesse.base.errors import NotFound
from largesse.base.i18n.languages import DEFAULT, LANGUAGES, chosen_language
from largesse.base.settings import Settings
from largesse.customers.authenticator import KEY_PREFIXES
from largesse.web.api.openapi.document import build_document, build_events_document
from largesse.web.api.openapi.parts import example_problem
from largesse.web.api.routes import operations_of
from largesse.web.docs.reference import prose, read_sections, read_tables
from largesse.web.kit.assets import Assets
from largesse.web.kit.pages import page, page_templates
from largesse.web.kit.problems import PROBLEMS, ProblemType
from largesse.web.kit.replies import encode_json
from largesse.web.kit.security import content_policy, page_headers

_FOLDER = Path(__file__).parent
_HEADERS = page_headers(content_policy(style_src="'self'", img_src="'self'"), max_age_s=300)


def docs_pages(settings: Settings, *, has_mailbox: bool = False) -> Sequence[BaseRoute]:
    """Returns the routes of the pages. Samples call the public address; `has_mailbox` links to captured mail."""
    return _Pages(settings, has_mailbox=has_mailbox).routes()


class _Pages:
    def __init__(self, settings: Settings, *, has_mailbox: bool) -> None:
        self._public_url = settings.public_url
        self._key_prefix = KEY_PREFIXES[settings.environment]
        self._operations = operations_of(settings.environment)
        self._has_mailbox = has_mailbox
        self._docs_url = settings.docs_url
        self._assets = Assets(_FOLDER / "assets", "/docs", _HEADERS)
        self._templates = {
            tag: page_templates(_FOLDER / "templates", tag, _FOLDER / "locale", prose=prose) for tag in LANGUAGES
        }

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self._show_landing),
            _page_route("/docs", self._reference),
            *self._assets.routes(),
            _document_route("/openapi.json", lambda: build_document(self._operations)),
            _document_route("/openapi-events.json", build_events_document),
            _page_route("/problems", self._problems),
            Route("/problems/{slug}", self._show_problem),
        ]

    async def _show_problem(self, request: Request) -> Response:
        html = self._problem_pages.get(request.path_params["slug"])
        if html is None:
            raise NotFound("There is no problem with that name; /problems lists them.")
        return page(html, _HEADERS)

    async def _show_landing(self, request: Request) -> Response:
        language = chosen_language(None, None, request.headers.get("accept-language", "")) or DEFAULT
        return page(self._landing_pages[language.tag], {**_HEADERS, "Vary": "Accept-Language"})

    @cached_property
    def _landing_pages(self) -> dict[str, str]:
        """The landing page in each language, by tag."""
        return {
            tag: self._render("landing.html", language=tag, version=__version__, has_mailbox=self._has_mailbox)
            for tag in LANGUAGES
        }

    def _problems(self) -> str:
        return self._render("problems.html", here="problems", problems=PROBLEMS)

    @cached_property
    def _problem_pages(self) -> dict[str, str]:
        """The page of each problem, by slug."""
        return {problem.slug: self._render_problem(problem) for problem in PROBLEMS}

    def _reference(self) -> str:
        document = build_document(self._operations)
        events = build_events_document()
        tables = read_tables(document)
        tables += [table for table in read_tables(events) if table.name not in document["components"]["schemas"]]
        return self._render(
            "reference.html",
            here="docs",
            version=__version__,
            base_url=self._public_url,
            key_prefix=self._key_prefix,
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
            operations=[operation for operation in self._operations if problem in operation.all_problems],
        )

    def _render(self, name: str, *, here: str = "", language: str = DEFAULT.tag, **values: object) -> str:
        asset: Callable[[str], str] = self._assets.address_of
        template = self._templates[language].get_template(name)
        return template.render(here=here, asset=asset, docs_url=self._docs_url, language=language, **values)


def _page_route(path: str, render: Callable[[], str]) -> Route:
    """Returns the route of a page that is rendered once."""
    html = cache(render)

    async def show(_: Request) -> Response:
        return page(html(), _HEADERS)

    return Route(path, show)


def _document_route(path: str, build: Callable[[], Any]) -> Route:
    """Returns the route of a JSON document that is built once."""
    document = cache(lambda: encode_json(build()))

    async def show(_: Request) -> Response:
        return Response(document(), media_type="application/json", headers=_HEADERS)

    return Route(path, show)
