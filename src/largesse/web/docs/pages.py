"""The pages beside the API: the landing page, the reference, the problems, and the OpenAPI documents.

The reference shows the OpenAPI document as operations, tables and code samples. It has no other source, so it cannot contradict the document.
Each page is rendered once, the landing page once in each language; the others are in English. An unknown address answers a browser with a page, too. Pages run no scripts and load nothing from other sites; their policy forbids both.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup, escape
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
from largesse.web.kit.asgi import Reply, Scope, encode_json
from largesse.web.kit.assets import Assets
from largesse.web.kit.pages import page, page_templates, public_path
from largesse.web.kit.problems import PROBLEMS, ProblemType
from largesse.web.kit.security import NO_REFERRER, UNLISTED, content_policy, page_headers


class Sample(msgspec.Struct, frozen=True):
    """Code to copy."""

    label: str
    code: str


def read_samples(method: str, url: str, examples: dict[str, Any], *, needs_key: bool) -> Iterator[Sample]:
    """Yields a curl and a Python sample for each example body, or for the call without a body."""
    for name, example in (examples or {"": None}).items():
        label = f", {_words(name)}" if len(examples) > 1 else ""
        yield Sample(f"curl{label}", _curl(method, url, example, needs_key=needs_key))
        yield Sample(f"Python{label}", _python(method, url, example, needs_key=needs_key))


def _curl(method: str, url: str, body: Any, *, needs_key: bool) -> str:
    usual = "GET" if body is None else "POST"  # curl uses this method by default
    parts = ["curl" if method == usual else f"curl -X {method}", f"'{url}'"]
    if needs_key:
        parts.append('-H "Authorization: Bearer $LARGESSE_API_KEY"')
    if body is not None:
        parts += ["-H 'Content-Type: application/json'", f"-d '{pretty(body)}'"]
    first = " ".join(parts[:2])
    return " \\\n  ".join([first, *parts[2:]])


def _python(method: str, url: str, body: Any, *, needs_key: bool) -> str:
    imports = ["import os", "", "import httpx"] if needs_key else ["import httpx"]
    arguments = [f'    "{url}",']
    if needs_key:
        arguments.append("""    headers={"Authorization": f"Bearer {os.environ['LARGESSE_API_KEY']}"},""")
    if body is not None:
        literal = "\n    ".join(_python_literal(body).splitlines())
        arguments.append(f"    json={literal},")
    call = [f"answer = httpx.{method.lower()}(", *arguments, ")", "answer.raise_for_status()"]
    if method != "DELETE":
        call.append("print(answer.json())")
    return "\n".join([*imports, "", *call])


def _python_literal(value: Any) -> str:
    """Returns JSON as Python source. Works because no text in an example contains `true`, `false` or `null`."""
    text = json.dumps(value, indent=4, ensure_ascii=False)
    return text.replace(": null", ": None").replace(": true", ": True").replace(": false", ": False")


def pretty(value: Any) -> str:
    """Returns indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _words(name: str) -> str:
    """Returns `codeBatch` as "code batch"."""
    return re.sub(r"([A-Z])", r" \1", name).lower()


Json = dict[str, Any]

_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]+)\]\((/[^)\s]*)\)")


class Field(msgspec.Struct, frozen=True):
    """A row of a table: a member of a body or answer, or a parameter. Texts are HTML."""

    name: str
    place: str  # path, query or header; empty for members
    kind: Markup
    required: bool
    rules: Markup
    description: Markup


class Table(msgspec.Struct, frozen=True):
    """The fields of one named schema."""

    name: str
    description: Markup
    fields: list[Field]


def read_tables(document: Json) -> list[Table]:
    """Returns a table for each schema of the document."""
    return [
        Table(
            name,
            prose(schema.get("description", "")),
            [
                read_field(member, "", value, required=member in schema.get("required", ()))
                for member, value in schema["properties"].items()
            ],
        )
        for name, schema in document["components"]["schemas"].items()
    ]


def prose(text: str) -> Markup:
    """Returns a text of the document as HTML: backticks become code, and links to our pages become links."""
    html = str(escape(text))
    html = _CODE.sub(r"<code>\1</code>", html)
    return Markup(_LINK.sub(r'<a href="\2">\1</a>', html))  # noqa: S704 - escaped first


def read_field(name: str, place: str, schema: Json, *, required: bool) -> Field:
    """Returns the row of a member or parameter. `place` is as in Field."""
    return Field(
        name=name,
        place=place,
        kind=type_in_words(schema),
        required=required,
        rules=Markup(", ").join(_rules(schema)),
        description=prose(schema.get("description", "")),
    )


def type_in_words(schema: Json) -> Markup:
    """Returns the type in words, with links to the tables of other schemas."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    words = []
    for kind in kinds:
        if kind == "array":
            words.append(Markup("array of {}").format(type_in_words(schema["items"])))
        elif kind == "object" and "additionalProperties" in schema:
            words.append(Markup("object of {}").format(type_in_words(schema["additionalProperties"])))
        elif kind != "null" and "format" in schema:
            words.append(escape(f"{kind} ({schema['format']})"))
        else:
            words.append(escape(kind))
    return Markup(" or ").join(words)


def _rules(schema: Json) -> Iterator[Markup]:
    """Yields the rules for a value, in words."""
    if values := schema.get("enum") or schema.get("x-extensible-enum"):
        yield Markup(" or ").join(Markup("<code>{}</code>").format(value) for value in values)
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    if lowest is not None and highest is not None:
        yield Markup("{} to {}").format(_number(lowest), _number(highest))
    elif lowest is not None:
        yield Markup("at least {}").format(_number(lowest))
    if "maxLength" in schema:
        yield Markup("at most {} characters").format(_number(schema["maxLength"]))
    if "maxItems" in schema:
        yield Markup("at most {} items").format(_number(schema["maxItems"]))
    if "pattern" in schema:
        yield Markup("matches <code>{}</code>").format(schema["pattern"])
    if "default" in schema:
        yield Markup("default <code>{}</code>").format(schema["default"])


def _number(number: float) -> str:
    return f"{number:,}"


class StatusRow(msgspec.Struct, frozen=True):
    """A status that an operation answers with."""

    status: str
    description: Markup
    kind: Markup


class Described(msgspec.Struct, frozen=True):
    """One operation of the reference."""

    id: str
    method: str
    path: str
    summary: str
    description: Markup
    needs_key: bool
    parameters: list[Field]
    body: str  # name of the schema; empty without a body
    samples: list[Sample]
    example: str  # a successful answer as JSON; empty for none
    status: str
    answers: list[StatusRow]


class Section(msgspec.Struct, frozen=True):
    """The operations of one tag."""

    name: str
    description: str
    operations: list[Described]


def read_sections(document: Json, base_url: str) -> list[Section]:
    """Returns the operations by tag, in the document's order. Samples call `base_url`."""
    described: dict[str, list[Described]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            shown = _describe(document, method.upper(), path, operation, base_url)
            described[operation["tags"][0]].append(shown)
    return [Section(tag["name"], tag["description"], described[tag["name"]]) for tag in document["tags"]]


def _describe(document: Json, method: str, path: str, operation: Json, base_url: str) -> Described:
    needs_key = operation.get("security") != []
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    examples = {name: example["value"] for name, example in body.get("examples", {}).items()}
    parameters = operation.get("parameters", [])
    status, success = next(iter(operation["responses"].items()))
    content = success.get("content", {}).get("application/json", {})
    url = base_url + _example_path(path, parameters)
    return Described(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description=prose(operation.get("description", "")),
        needs_key=needs_key,
        parameters=[
            read_field(
                p["name"], p["in"], {**p["schema"], "description": p.get("description", "")}, required=p["required"]
            )
            for p in parameters
        ],
        body=body["schema"]["$ref"].rpartition("/")[2] if body else "",
        samples=list(read_samples(method, url, examples, needs_key=needs_key)),
        example=pretty(content["example"]) if content else "",
        status=f"{status} {HTTPStatus(int(status)).phrase}",
        answers=[_answer(document, status, response) for status, response in operation["responses"].items()],
    )


def _answer(document: Json, status: str, response: Json) -> StatusRow:
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    content = next(iter(response.get("content", {}).values()), None)
    return StatusRow(
        status=status,
        description=Markup("<br>").join(prose(line) for line in response["description"].split("\n\n")),
        kind=type_in_words(content["schema"]) if content else Markup("no body"),
    )


def _example_path(path: str, parameters: list[Json]) -> str:
    for parameter in parameters:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", str(parameter["example"]))
    return path


_FOLDER = Path(__file__).parent
_POLICY = content_policy(style_src="'self'", img_src="'self'")
_HEADERS = page_headers(_POLICY, max_age_s=300)


class DocsPages:
    """The pages of an installation. Samples call the public address; `has_mailbox` links to captured mail."""

    def __init__(self, settings: Settings, *, has_mailbox: bool = False) -> None:
        self._public_url = settings.public_url
        self._base = public_path(settings.public_url)
        self._key_prefix = KEY_PREFIXES[settings.environment]
        self._operations = operations_of(settings.environment)
        self._has_mailbox = has_mailbox
        self._docs_url = settings.docs_url
        self._assets = Assets(_FOLDER / "assets", "/docs", _HEADERS)
        self._templates = {
            tag: page_templates(_FOLDER / "templates", tag, _FOLDER / "locale", prose=prose) for tag in LANGUAGES
        }

    def routes(self) -> list[BaseRoute]:
        """Returns the routes of the pages."""
        return [
            Route("/", self._show_landing),
            _page_route("/docs", self._reference),
            *self._assets.routes(),
            _document_route("/openapi.json", lambda: build_document(self._operations, self._public_url)),
            _document_route("/openapi-events.json", build_events_document),
            _page_route("/problems", lambda: self._render("problems.html", here="problems", problems=PROBLEMS)),
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

    def in_browser(self, scope: Scope, reply: Reply) -> Reply:
        """Returns the reply to an error; to a browser, which asks for HTML, with a page as its body."""
        asked = Request(scope).headers
        if "text/html" not in asked.get("accept", ""):
            return reply
        language = chosen_language(None, None, asked.get("accept-language", "")) or DEFAULT
        html = self._render("trouble.html", language=language.tag, status=reply.status, path=scope["path"])
        headers = (*reply.headers, ("content-security-policy", _POLICY), *NO_REFERRER.items(), *UNLISTED.items())
        return Reply(html.encode(), reply.status, "text/html; charset=utf-8", headers)

    @cached_property
    def _landing_pages(self) -> dict[str, str]:
        """The landing page in each language, by tag."""
        return {
            tag: self._render("landing.html", language=tag, version=__version__, has_mailbox=self._has_mailbox)
            for tag in LANGUAGES
        }

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
            example=pretty(example_problem(problem)),
            operations=[operation for operation in self._operations if problem in operation.all_problems],
        )

    def _render(self, name: str, *, here: str = "", language: str = DEFAULT.tag, **values: object) -> str:
        asset: Callable[[str], str] = self._assets.address_of
        template = self._templates[language].get_template(name)
        html = template.render(here=here, asset=asset, docs_url=self._docs_url, language=language, **values)
        return html.replace('="/', f'="{self._base}/')  # in attributes alone: texts have no plain quotation marks


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
