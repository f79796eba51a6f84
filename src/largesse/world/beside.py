"""The files beside a world file: pictures, and nothing that lies elsewhere."""

from __future__ import annotations

from importlib.resources.abc import Traversable

from largesse.catalogue.pictures import MAX_BYTES, Picture, PictureRefused, read_picture

_MAX_TOTAL_BYTES = 128 * 2**20  # of all pictures of one world file


class Beside:
    """Reads the pictures in a folder and those below it, each once; without a folder there are none."""

    def __init__(self, folder: Traversable | None) -> None:
        self._folder = folder
        self._read: dict[str, Picture] = {}
        self._total_bytes = 0

    def picture(self, name: str) -> Picture:
        """The picture in the file of that name, such as `pictures/coffee.png`. Raises PictureRefused."""
        if name not in self._read:
            picture = read_picture(self._content(name))
            self._total_bytes += len(picture.content)
            if self._total_bytes > _MAX_TOTAL_BYTES:
                raise PictureRefused(
                    f"is one too many: the pictures of a file have at most {_MAX_TOTAL_BYTES // 2**20} MiB together"
                )
            self._read[name] = picture
        return self._read[name]

    def _content(self, name: str) -> bytes:
        parts = name.split("/")
        if "\\" in name or ":" in name or any(part in {"", ".", ".."} for part in parts):
            raise PictureRefused("must be the name of a file beside the world file, as pictures/coffee.png")
        if self._folder is None:
            raise PictureRefused("is not there: the world file lies in no folder")
        try:
            with self._folder.joinpath(*parts).open("rb") as file:
                content: bytes = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise PictureRefused(f"cannot be read: {error.strerror or error}") from None
        return content
