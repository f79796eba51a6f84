"""Pictures of products, for every page and for mail: public, named by their content, and so the same for good."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from largesse.base.errors import NotFound, Problem
from largesse.base.turns import Turns
from largesse.catalogue.pictures import is_name, media_type, picture_path, read_content
from largesse.catalogue.recent import Recent
from largesse.database.scope import LOOKUP
from largesse.web.kit.assets import FOR_GOOD
from largesse.web.kit.pages import guarded
from largesse.web.kit.problems import headers_of, problem_type
from largesse.web.kit.security import COMMON, content_policy
from largesse.web.kit.services import Services

_KEPT_BYTES = 16 * 2**20
_KEPT = 2_000
_HEADERS = {
    **COMMON,
    "Content-Security-Policy": content_policy(),
    "Cross-Origin-Resource-Policy": "cross-origin",  # mail is read on other sites
}


def picture_routes(services: Services) -> Sequence[BaseRoute]:
    """The route of all pictures. Those asked for last are kept in memory; few at a time are read from the database."""
    kept: Recent[bytes] = Recent(max_total=_KEPT_BYTES, max_entries=_KEPT)
    reads: Turns[None] = Turns(at_once=2, each=2, max_waiting=1_000)

    async def picture(request: Request) -> Response:
        name = request.path_params["name"]
        content = kept.get(name)
        if content is None:
            content = await _read(name)
            if kept.get(name) is None:
                kept.put(name, content)
        headers = {**_HEADERS, "Cache-Control": FOR_GOOD}
        return Response(content, media_type=media_type(name), headers=headers)

    async def _read(name: str) -> bytes:
        content = None
        if is_name(name):
            async with reads.turn(None), services.database.connection(LOOKUP) as connection:
                content = await read_content(connection, name)
        if content is None:
            raise NotFound("There is no such picture.")
        return content

    def wrong(_: Request, problem: Problem) -> Response:
        headers = {**COMMON, **headers_of(problem), "Cache-Control": "no-store"}
        return Response(status_code=problem_type(type(problem)).status, headers=headers)

    return [Route(picture_path("{name}"), guarded(picture, services.patience, wrong, {}), methods=["GET"])]
