"""An administrator's pages of the request log: the API requests of the company's keys, newest first."""

import re
from collections.abc import AsyncIterator, Sequence

from starlette.responses import Response

from largesse.base.errors import NotFound
from largesse.base.i18n.languages import text
from largesse.customers.key_store import list_keys
from largesse.request_log.model import DAYS, METHODS, LoggedRequest, RequestFilter
from largesse.request_log.store import LOOKED_AT, list_newest, read_request
from largesse.web.api.routes import OPERATIONS, operations_of
from largesse.web.console.context import RequestContext
from largesse.web.kit.query import INT64

_PAGE = 50
_OF_FILE_AT_ONCE = 1_000
_COLUMNS = (
    *(text("Number"), text("Sent at (UTC)"), text("Method"), text("Path"), text("Operation"), text("Status")),
    *(text("Problem"), text("Duration (ms)"), text("Request ID"), text("API key"), text("Service account")),
    text("Network address"),
)
_CLASSES = {"2": 2, "4": 4, "5": 5}
_NAMES = {"2": text("2xx: carried out"), "4": text("4xx: refused"), "5": text("5xx: failed")}
_KINDS = {2: "good", 4: "waiting", 5: "bad"}
_ROUTES = {operation.path for operation in (*OPERATIONS, *operations_of("staging"))}
_FILTERS = ("status", "method", "key", "request", "path")
_AROUND_PATH = re.compile(r"^https?://[^/?#]*|[?#].*$", re.IGNORECASE | re.DOTALL)


async def show(context: RequestContext) -> Response:
    """Shows a page of the log, filtered by status, method, key, request id and path."""
    before = context.parameters.number("before", INT64)
    requests, following = await _newest(context, before or INT64, _PAGE)
    keys = await context.read(list_keys, customer_id=context.person.customer_id, with_deleted=True)
    # A deleted key is named while its requests are shown.
    here = [key for key in keys if key.environment == context.person.environment]
    named = [key for key in here if not key.deleted_at or key.id == context.parameters.number("key")]
    return context.page(
        "requests.html",
        requests=requests,
        kind_of=kind_of,
        statuses=[(value, context.say(name)) for value, name in _NAMES.items()],
        methods=[(one, one) for one in METHODS],
        keys=[(str(key.id), key.key) for key in named],
        query=context.query,
        days=DAYS,
        older=context.here(before=following) if following is not None else None,
        looked_at=context.language.number(LOOKED_AT),
        newest=context.here(before=None) if before is not None else None,
        is_filtered=any(context.query(name) for name in _FILTERS) or before is not None,
        csv=context.here(before=None).replace("/app/requests", "/app/requests.csv", 1),
    )


async def download(context: RequestContext) -> Response:
    """Sends all requests that match the page's filter as a CSV file."""
    return await context.csv("requests.csv", [context.say(one) for one in _COLUMNS], _rows(context))


async def one(context: RequestContext) -> Response:
    """Shows a request. Raises NotFound."""
    request = await context.read(read_request, context.customer, context.number("request", highest=INT64))
    if request is None:
        raise NotFound("There is no request with that number in the log.")
    return context.page("request.html", request=request, kind_of=kind_of, days=DAYS)


def kind_of(status: int) -> str:
    """Returns the kind of state for an HTTP status."""
    return _KINDS.get(status // 100, "still")


async def _rows(context: RequestContext) -> AsyncIterator[Sequence[object]]:
    before: int | None = INT64
    while before is not None:
        requests, before = await _newest(context, before, _OF_FILE_AT_ONCE)
        for request in requests:
            yield (
                request.id,
                context.instant(request.at),
                request.method,
                request.path,
                f"{request.method} {request.route}",
                request.status,
                request.problem,
                request.duration_ms,
                request.request_id,
                request.key or request.key_id,
                request.service_account,
                request.address,
            )


async def _newest(context: RequestContext, before: int, limit: int) -> tuple[list[LoggedRequest], int | None]:
    return await context.read(list_newest, context.customer, _filter(context), before=before, limit=limit)


def _filter(context: RequestContext) -> RequestFilter:
    """Returns the filter in the page's address. An unknown value does not filter."""
    method, path = context.query("method"), _path(context.query("path"))
    is_route = path in _ROUTES
    return RequestFilter(
        status_class=_CLASSES.get(context.query("status")),
        method=method if method in METHODS else None,
        key_id=context.parameters.number("key"),
        request_id=context.query("request").strip() or None,
        route=path if is_route else None,
        path=None if is_route else path,
    )


def _path(typed: str) -> str | None:
    """Returns the path that somebody typed, or pasted with the rest of an address; None for none."""
    path = _AROUND_PATH.sub("", typed.strip()).strip("/")
    return f"/{path}" if path or typed.strip() else None
