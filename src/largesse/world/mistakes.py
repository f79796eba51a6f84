"""What is wrong with a world file: gathered, so that one run shows many mistakes."""

from __future__ import annotations

from largesse.base.errors import StartError
from largesse.base.text import cleaned
from largesse.world.document import Place

_SHOWN = 20  # in one run


class Mistakes:
    """What is wrong with a file, in the order of its lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, line: int, path: str, text: str) -> None:
        """Notes one at a line and a path of the file, its text fit for a terminal."""
        self._found.append((line, cleaned(f"{self.file}:{line}: {path}: {text}", "\ufffd")))

    def note(self, place: Place, name: str, text: str) -> None:
        """Adds one about a field of an object that has been read."""
        self._found.append((place.line_of(name), place.mistake(name, text)))

    def refuse_any(self) -> None:
        """Raises StartError with the first mistakes, one per line, if there are any."""
        if not self._found:
            return
        lines = [text for _, text in sorted(self._found, key=lambda found: found[0])]
        more = len(lines) - _SHOWN
        raise StartError("\n".join(lines[:_SHOWN] + ([f"… and {more} more"] if more > 0 else [])))
