"""Reads the sheets of XLSX and ODS workbooks in a separate process (`workbook_process`)."""

import asyncio
import contextlib
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import structlog

from largesse.base.cooperative import FairTurns, Steps
from largesse.drafts import sheet

_PROGRAM = Path(__file__).with_name("workbook_process.py")
# The environment variables that the interpreter needs. The process gets no settings and no secrets.
_ENVIRONMENT = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT")
_TIMEOUT_S = 30.0
ZIP = b"PK\x03\x04"
OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"

_log = structlog.get_logger(__name__)


class _Line(msgspec.Struct):
    """Some rows of a sheet, or why it cannot be read. Without a name, the workbook cannot be read."""

    name: str | None = None
    rows: list[tuple[int, list[str]]] = []
    hidden: int = 0  # how many of these rows are hidden
    refused: str | None = None
    limit: int = 0
    row: int = 0


# The program allows one more: a row may be a heading, and a cell may begin with an apostrophe.
_LIMITS = {"rows": sheet.MAX_ROWS, "cell": sheet.MAX_CELL}
_DECODER = msgspec.json.Decoder(_Line)


def is_workbook(data: bytes) -> bool:
    """Returns whether a file begins like a workbook, of a supported kind or not."""
    return data.startswith((ZIP, OLD_WORKBOOK))


class Workbooks:
    """Runs the program for at most two workbooks at a time, and one of each customer."""

    def __init__(self) -> None:
        self._turns: FairTurns[int] = FairTurns(at_once=2, each=1, max_waiting=20)

    @asynccontextmanager
    async def unpacked(self, customer_id: int, data: bytes) -> AsyncIterator[bytes]:
        """Yields the output of the program, for `read_sheets`. It may be many times the file, so the turn lasts until the block ends.

        Raises SheetRefused, and Unavailable if too many wait.
        """
        if len(data) > sheet.MAX_FILE_BYTES:
            raise sheet.SheetRefused("bytes", limit=sheet.MAX_FILE_BYTES)
        async with self._turns.turn(customer_id):
            yield await _ask(data)


def read_sheets(output: bytes) -> Steps[dict[str, sheet.Sheet | sheet.SheetRefused]]:
    """Returns the visible sheets that are not blank, by name: each with its rows, or the reason why it cannot be read.

    Raises SheetRefused if none can be read.
    """
    makers: dict[str, sheet.SheetMaker] = {}
    hidden: Counter[str] = Counter()
    refused: dict[str, sheet.SheetRefused] = {}
    for said in output.splitlines():
        line = _DECODER.decode(said)
        if line.name is None:
            raise sheet.SheetRefused(line.refused or "broken", limit=line.limit)
        maker = makers.setdefault(line.name, sheet.SheetMaker(is_file=True))
        hidden[line.name] += line.hidden
        if line.refused is not None:
            refused[line.name] = sheet.SheetRefused(
                line.refused, row=line.row, limit=_LIMITS.get(line.refused, line.limit)
            )
        yield
        try:
            for number, cells in line.rows if line.name not in refused else ():
                maker.add(number, cells)
                yield
        except sheet.SheetRefused as refusal:
            refused.setdefault(line.name, refusal)
    sheets = {name: refused.get(name) or _sheet(maker, hidden[name]) for name, maker in makers.items()}
    if all(isinstance(one, sheet.SheetRefused) for one in sheets.values()):
        raise next((one for one in sheets.values() if isinstance(one, sheet.SheetRefused)), sheet.SheetRefused("empty"))
    return sheets


def _sheet(maker: sheet.SheetMaker, hidden: int) -> sheet.Sheet | sheet.SheetRefused:
    try:
        return maker.sheet(hidden=hidden)
    except sheet.SheetRefused as refusal:
        return refusal


async def _ask(data: bytes) -> bytes:
    """Returns the output of the program for a file. Raises SheetRefused if the program fails, as the file is broken then."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_PROGRAM),
        str(sheet.MAX_ROWS + 1),
        str(sheet.MAX_CHARACTERS),
        str(sheet.MAX_COLUMNS),
        str(sheet.MAX_CELL + 1),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        start_new_session=True,  # signals to the terminal's group, such as Ctrl-C, are only for the service
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            said, _ = await process.communicate(data)
    except TimeoutError:
        raise sheet.SheetRefused("broken") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode != 0:
        _log.warning("workbook_not_read", status=process.returncode, bytes=len(data))
        raise sheet.SheetRefused("broken")
    return said
