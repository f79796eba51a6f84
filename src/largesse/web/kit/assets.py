"""Styles, scripts and icons: read once, and named by their content, so that browsers keep them for good.

`claim.css` is served as `claim.4f2a90c1d3e5.css`, which never changes, and under its own name, which is looked at again after a
few minutes. Pages name the former.

Pictures of products, for every page and for mail: public, named by their content, and so the same for good.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from largesse.base.errors import NotFound, Problem
from largesse.base.fair_turns import FairTurns
from largesse.catalogue.pictures import is_name, media_type, picture_path, read_content
from largesse.catalogue.snapshot import RecentlyUsed
from largesse.db.scope import LOOKUP
from largesse.web.kit.compression import gzipped, takes_gzip
from largesse.web.kit.pages import guarded
from largesse.web.kit.problems import headers_of, problem_type
from largesse.web.kit.security import COMMON, content_policy
from largesse.web.kit.services import Services

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_SHARED = tuple(sorted((Path(__file__).parent / "shared").iterdir()))
_HASH_CHARACTERS = 12
FOR_GOOD = f"public, max-age={365 * 24 * 3600}, immutable"
_FOR_NOW = "public, max-age=300"


@dataclass(frozen=True, slots=True)
class _Asset:
    name: str
    body: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.body).hexdigest()[:_HASH_CHARACTERS]

    @property
    def served_name(self) -> str:
        stem, _, ending = self.name.rpartition(".")
        return f"{stem}.{self.digest}.{ending}"


class Assets:
    """The assets of a folder, served below `address`, such as `/claim/assets`, with those headers beside the common ones.

    `tokens.css`, the colours, type and spaces of all pages, and the icon are among those of every folder.
    """

    def __init__(self, folder: Path, address: str, headers: Mapping[str, str] | None = None) -> None:
        self._address = address
        self._headers = {**COMMON, **(headers or {})}
        self._assets = {
            path.name: _Asset(path.name, path.read_bytes())
            for path in (*sorted(folder.iterdir()), *_SHARED)
            if path.suffix in _TYPES
        }

    def address_of(self, name: str) -> str:
        """Where the file of that name is found for good, below the path that the public address begins with."""
        return f"{self._address}/{self._assets[name].served_name}"

    def routes(self) -> list[BaseRoute]:
        """Each file, under the name of its content and under its own."""
        return [
            route
            for asset in self._assets.values()
            for route in (self._route(asset, asset.served_name, FOR_GOOD), self._route(asset, asset.name, _FOR_NOW))
        ]

    def _route(self, asset: _Asset, name: str, keeping: str) -> Route:
        # Each encoding is another representation, and has a tag of its own.
        plain = {"ETag": f'"{asset.digest}"', "Cache-Control": keeping, "Vary": "Accept-Encoding"}
        packed = {**plain, "ETag": f'"{asset.digest}-gzip"', "Content-Encoding": "gzip"}
        body_gzipped = gzipped(asset.body, 9)
        media_type = _TYPES[Path(asset.name).suffix]

        async def serve(request: Request) -> Response:
            known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
            is_packed = takes_gzip(request.headers.get("accept-encoding", ""))
            headers = {**self._headers, **(packed if is_packed else plain)}
            if headers["ETag"] in known:
                headers.pop("Content-Encoding", None)
                return Response(status_code=304, headers=headers)
            return Response(body_gzipped if is_packed else asset.body, media_type=media_type, headers=headers)

        return Route(f"{self._address}/{name}", serve, methods=["GET"])


_KEPT_BYTES = 16 * 2**20
_KEPT = 2_000
_HEADERS = {
    **COMMON,
    "Content-Security-Policy": content_policy(),
    "Cross-Origin-Resource-Policy": "cross-origin",  # mail is read on other sites
}


def picture_routes(services: Services) -> Sequence[BaseRoute]:
    """The route of all pictures. Those asked for last are kept in memory; few at a time are read from the database."""
    kept: RecentlyUsed[bytes] = RecentlyUsed(max_total=_KEPT_BYTES, max_entries=_KEPT)
    reads: FairTurns[None] = FairTurns(at_once=2, each=2, max_waiting=1_000)

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

    return [Route(picture_path("{name}"), guarded(picture, services.timeouts, wrong, {}), methods=["GET"])]
