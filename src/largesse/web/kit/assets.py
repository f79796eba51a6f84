"""Static files: styles, scripts and icons, and the pictures of products and brands.

Each is served under a name made from its content, such as `claim.4f2a90c1d3e5.css`, which browsers may cache for ever. Pages use that
name. Styles, scripts and icons also have their plain names, which browsers check again after five minutes.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from largesse.base.cooperative import FairTurns
from largesse.base.errors import NotFound, Problem
from largesse.base.recently_used import RecentlyUsed
from largesse.branding.store import read_brand_picture
from largesse.catalogue.pictures import is_name, media_type, picture_path, read_content
from largesse.db.scope import LOOKUP
from largesse.web.kit.compression import gzipped, takes_gzip
from largesse.web.kit.pages import guarded
from largesse.web.kit.problems import headers_of, problem_type
from largesse.web.kit.security import COMMON, content_policy
from largesse.web.kit.services import Services

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_SHARED = tuple(sorted((Path(__file__).parent / "shared").iterdir()))
_HASH_CHARACTERS = 12
IMMUTABLE = f"public, max-age={365 * 24 * 3600}, immutable"
_SHORT = "public, max-age=300"


class _Asset(msgspec.Struct, frozen=True, dict=True):
    name: str
    body: bytes

    @cached_property  # cached, because every page names its assets
    def digest(self) -> str:
        return hashlib.sha256(self.body).hexdigest()[:_HASH_CHARACTERS]

    @property
    def served_name(self) -> str:
        stem, _, ending = self.name.rpartition(".")
        return f"{stem}.{self.digest}.{ending}"


class Assets:
    """The assets of some folders, served below `address`, such as `/claim/assets`. `headers` are sent in addition to the common ones.

    Every folder also has the shared assets: `tokens.css` with the colours, type and spaces of all pages, and the icon.
    """

    def __init__(
        self, folders: Path | tuple[Path, ...], address: str, headers: Mapping[str, str] | None = None
    ) -> None:
        folders = (folders,) if isinstance(folders, Path) else folders
        self._address = address
        self._headers = {**COMMON, **(headers or {})}
        self._assets = {
            path.name: _Asset(path.name, path.read_bytes())
            for path in (*(one for folder in folders for one in sorted(folder.iterdir())), *_SHARED)
            if path.suffix in _TYPES
        }

    def address_of(self, name: str) -> str:
        """Returns the immutable address of a file, below the path of the public address."""
        return f"{self._address}/{self._assets[name].served_name}"

    def routes(self) -> list[BaseRoute]:
        """Returns two routes for each file: one for the name made from its content, one for its own name."""
        return [
            route
            for asset in self._assets.values()
            for route in (self._route(asset, asset.served_name, IMMUTABLE), self._route(asset, asset.name, _SHORT))
        ]

    def _route(self, asset: _Asset, name: str, cache_control: str) -> Route:
        # Each encoding is a representation with its own tag.
        plain = {"ETag": f'"{asset.digest}"', "Cache-Control": cache_control, "Vary": "Accept-Encoding"}
        packed = {**plain, "ETag": f'"{asset.digest}-gzip"', "Content-Encoding": "gzip"}
        body_gzipped = gzipped(asset.body, 9)
        media_type = _TYPES[Path(asset.name).suffix]

        async def serve(request: Request) -> Response:
            cached = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
            is_packed = takes_gzip(request.headers.get("accept-encoding", ""))
            headers = {**self._headers, **(packed if is_packed else plain)}
            if headers["ETag"] in cached:
                headers.pop("Content-Encoding", None)
                return Response(status_code=304, headers=headers)
            return Response(body_gzipped if is_packed else asset.body, media_type=media_type, headers=headers)

        return Route(f"{self._address}/{name}", serve, methods=["GET"])


_CACHED_BYTES = 16 * 2**20
_CACHED = 2_000
_HEADERS = {
    **COMMON,
    "Content-Security-Policy": content_policy(),
    "Cross-Origin-Resource-Policy": "cross-origin",  # allowed, because mail clients load pictures from other sites
}


def picture_routes(services: Services) -> Sequence[BaseRoute]:
    """Returns the route of all pictures. Caches recent ones in memory and reads two at a time from the database."""
    cache: RecentlyUsed[str, bytes] = RecentlyUsed(max_entries=_CACHED, max_total=_CACHED_BYTES, weigh=len)
    reads: FairTurns[None] = FairTurns(at_once=2, each=2, max_waiting=1_000)

    async def picture(request: Request) -> Response:
        name = request.path_params["name"]
        content = cache.get(name)
        if content is None:
            content = await _read(name)
            if cache.get(name) is None:
                cache.put(name, content)
        headers = {**_HEADERS, "Cache-Control": IMMUTABLE}
        return Response(content, media_type=media_type(name), headers=headers)

    async def _read(name: str) -> bytes:
        content = None
        if is_name(name):
            async with reads.turn(None), services.database.connection(LOOKUP) as connection:
                content = await read_content(connection, name) or await read_brand_picture(connection, name)
        if content is None:
            raise NotFound("There is no such picture.")
        return content

    def error(_: Request, problem: Problem) -> Response:
        headers = {**COMMON, **headers_of(problem), "Cache-Control": "no-store"}
        return Response(status_code=problem_type(type(problem)).status, headers=headers)

    return [Route(picture_path("{name}"), guarded(picture, services.timeouts, error, {}), methods=["GET"])]


_HEAD = re.compile(r"<svg\b[^>]*>\s*")


@cache
def icons() -> ZipFile:
    """Opens the archive of the Lucide icons. That takes some 20 ms, and the package would do it again for each icon."""
    return ZipFile(BytesIO(files("lucide").joinpath("lucide.zip").read_bytes()))


@cache
def icon(name: str) -> Markup:
    """Returns the Lucide icon with that name, such as `gift`. Screen readers skip it, because a word or a label always says the same.

    Size, stroke and colour come from the class `icon` of the style sheet. Raises KeyError if there is none.
    """
    drawn = icons().read(f"{name}.svg").decode()
    drawn = _HEAD.sub('<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">', drawn, count=1)
    return Markup(re.sub(r"\s*(/?>)\s*", r"\1", drawn))  # noqa: S704 - the package's own drawing
