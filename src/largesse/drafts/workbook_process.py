"""The program that reads a workbook from its input, and writes the rows as lines of JSON to its output.

It is a separate process, as a workbook unpacks to many times its size, and a malicious one could use up all memory and time. The system
bounds both for the process, and a crash ends nothing else. It imports none of our modules, so that it starts quickly.
"""

import html
import io
import json
import posixpath
import re
import resource
import sys
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime, time
from typing import Any, NamedTuple

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

_MEMORY_BYTES = 1024 * 1024 * 1024
_CPU_S = 10
_MAX_UNPACKED = 64 * 1024 * 1024
_MAX_PARTS = 2_000
_CHARACTERS_A_LINE = 20_000  # each cell counts as one more than its characters
_MAX_SHEETS = 20
# Characters of a sheet's name. Each line has the name, so one of megabytes would make gigabytes of a small file.
_MAX_NAME = 255
_OLD = b"\xd0\xcf\x11\xe0"  # the first bytes of files of Excel before 2007, and of encrypted workbooks
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError)
_RELATIONS = "xl/_rels/workbook.xml.rels"
# An OpenDocument workbook (ODS) says what it is in the part `mimetype`, and has all its sheets in the part `content.xml`.
_OPEN_DOCUMENT = b"application/vnd.oasis.opendocument.spreadsheet"
_CONTENT = "content.xml"
_ATTRIBUTES = rb"""((?:\s+[\w:.-]+=(?:"[^"<]*"|'[^'<]*'))*)\s*"""
_OPEN_CELL = re.compile(rb"<((?:\w+:)?)table-cell" + _ATTRIBUTES + rb"(/?>)(</\1table-cell\s*>)?")
_NO_TEXT = re.compile(rb"""\soffice:string-value=(?:""|'')""")
_OPEN_ROW = re.compile(rb"<(?:\w+:)?(?:table(?=\s)|table-row(?=[\s/>]))" + _ATTRIBUTES)
# Errors in a cell of an OpenDocument workbook without a name of their own.
_NUMBERED_ERROR = re.compile(r"Err:[0-9]{3}")
_MOST_ROWS = 1_048_576
# The type of a cell with an error, such as `#N/A`.
_ERROR_TYPE = re.compile(rb"""(<(?:\w+:)?c\s[^<>]*?\bt=["'])e(?=["'])""")
# A cell with a formula and no value, from a program that computes no values. A formula whose value is an empty text has `t="str"`.
_NOT_COMPUTED = re.compile(
    rb"<((?:\w+:)?)c((?:\s+(?!t=)[\w:]+=(?:\"[^\"<>]*\"|'[^'<>]*'))*)\s*>\s*"
    rb"<\1f(?:\s[^<>]*)?(?:/>|>[^<>]*</\1f>)\s*(?:<\1v\s*(?:/>|></\1v\s*>)\s*)?</\1c\s*>"
)


class _Refused(Exception):
    """A workbook or a sheet cannot be read: the reason, the limit, and the row if one row is the cause."""

    def __init__(self, why: str, limit: int, row: int = 0) -> None:
        super().__init__(why)
        self.parts = {"refused": why, "limit": limit, "row": row}


class _Limits(NamedTuple):
    rows: int
    characters: int
    columns: int
    cell: int  # characters of one cell


def main() -> None:
    """Writes lines of JSON such as `{"name": …, "rows": [[number, [cell, …]], …]}`, each with some rows of a sheet.

    `hidden` is how many of the rows are hidden, for example by a filter. A sheet that cannot be read has `refused`, `limit` and `row` instead of
    rows. If the workbook cannot be read, the only line has no name. The arguments of the program are the limits.
    """
    limits = _Limits(*(int(argument) for argument in sys.argv[1:]))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    data = sys.stdin.buffer.read()
    try:
        _check(data)
        lines = list(_sheets(_with_errors(data), limits))
    except _Refused as refusal:
        lines = [refusal.parts]
    except (CalamineError, MemoryError):
        lines = [_Refused("broken", 0).parts]
    sys.stdout.writelines(json.dumps(line) + "\n" for line in lines)


def _check(data: bytes) -> None:
    """Raises _Refused if the file is not a workbook, or declares that it unpacks to too much.

    Calamine unpacks a part to its end and refuses it then if it is longer than declared. Until then, the limits of the process hold.
    """
    if data.startswith(_OLD):
        raise _Refused("old", 0)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            is_known = "xl/workbook.xml" in archive.namelist() or _is_open_document(archive)
    except _BROKEN:
        raise _Refused("kind", 0) from None
    if not is_known:
        raise _Refused("kind", 0)
    if len(parts) > _MAX_PARTS or sum(part.file_size for part in parts) > _MAX_UNPACKED:
        raise _Refused("unpacked", _MAX_UNPACKED)


def _is_open_document(archive: zipfile.ZipFile) -> bool:
    names = archive.namelist()
    if "mimetype" not in names or _CONTENT not in names or archive.getinfo("mimetype").file_size > len(_OPEN_DOCUMENT):
        return False
    return archive.read("mimetype") == _OPEN_DOCUMENT


def _with_errors(data: bytes) -> bytes:
    """Returns a workbook with errors as texts. Calamine would leave these cells blank, and a blank quantity means one gift."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = dict.fromkeys(archive.namelist())
            sheets = {
                name: archive.read(name) for name in names if name.startswith("xl/worksheets/") or name == _CONTENT
            }
            changed = {name: new for name, xml in sheets.items() if (new := _named_errors(xml)) != xml}
            if not changed:
                return data
            written = io.BytesIO()
            with zipfile.ZipFile(written, "w") as copy:
                for name in names:
                    copy.writestr(name, changed.get(name) or archive.read(name))
    except _BROKEN:
        return data  # calamine reports what is wrong with the file
    return written.getvalue()


def _named_errors(xml: bytes) -> bytes:
    """Returns a sheet, or the sheets of an OpenDocument workbook, with errors as texts. A formula without a value counts as an error too."""
    xml = _OPEN_CELL.sub(_computed, xml)
    typed = _ERROR_TYPE.sub(rb"\1str", xml)
    return _NOT_COMPUTED.sub(rb'<\1c\2 t="str"><\1v>#CALC!</\1v></\1c>', typed)


def _computed(cell: re.Match[bytes]) -> bytes:
    """Returns the opening tag of a cell of an OpenDocument workbook, or a blank cell, so that its error is read. A formula without a value has one."""
    prefix, attributes, end, closing = cell.groups()
    if b'value-type="error"' in attributes:  # the error is in the cell's paragraph
        return b"<%btable-cell%b%b%b" % (prefix, _NO_TEXT.sub(b"", attributes), end, closing or b"")
    if b":formula=" not in attributes or b"office:value-type=" in attributes or not (closing or end == b"/>"):
        return cell[0]
    said = b'office:value-type="string"><text:p>#CALC!</text:p>'
    return b"<%btable-cell%b %b</%btable-cell>" % (prefix, attributes, said, prefix)


def _sheets(data: bytes, limits: _Limits) -> Iterator[dict[str, Any]]:
    """Yields the visible sheets except blank ones. The limit of characters applies to all sheets together."""
    characters = 0
    hidden = _hidden_rows(data)
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
    shown = [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible
    ]
    if any(len(name) > _MAX_NAME for name in shown):
        raise _Refused("broken", 0)
    for name in list(dict.fromkeys(shown))[:_MAX_SHEETS]:
        try:
            rows = list(_rows(workbook.get_sheet_by_name(name), limits, characters))
        except _Refused as refusal:
            yield {"name": name, **refusal.parts}
            continue
        characters += sum(len(cell) for _, cells in rows for cell in cells)
        for some in _cut(rows):
            yield {"name": name, "rows": some, "hidden": sum(number in hidden.get(name, ()) for number, _ in some)}


def _hidden_rows(data: bytes) -> dict[str, set[int]]:
    """Returns the numbers of the hidden rows of each sheet, as calamine does not say which rows are hidden. Leaves out what it cannot find."""
    hidden: dict[str, set[int]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if _is_open_document(archive):
                return _hidden_rows_of_open_document(archive.read(_CONTENT))
            parts = {
                _attribute(tag, b"Id"): _attribute(tag, b"Target")
                for tag in _tags(archive, _RELATIONS, b"Relationship")
            }
            for tag in _tags(archive, "xl/workbook.xml", b"sheet"):
                path = posixpath.normpath(posixpath.join("/xl", parts.get(_attribute(tag, rb"\w+:id"), "")))[1:]
                rows = _tags(archive, path, b"row") if path in archive.namelist() else ()
                numbers = {_attribute(row, b"r") for row in rows if _attribute(row, b"hidden") in {"1", "true"}}
                hidden[_attribute(tag, b"name")] = {int(number) for number in numbers if number.isdecimal()}
    except (KeyError, *_BROKEN):
        pass  # calamine reports what is wrong with the file
    return hidden


def _hidden_rows_of_open_document(content: bytes) -> dict[str, set[int]]:
    hidden: dict[str, set[int]] = {}
    numbers: set[int] = set()
    number = 0  # of the row before
    for tag in _OPEN_ROW.finditer(content):
        if b"table-row" not in tag[0]:
            numbers, number = hidden.setdefault(_attribute(tag[0], rb"\w+:name"), set()), 0
            continue
        times = _attribute(tag[0], rb"\w+:number-rows-repeated")
        last = min(number + (int(times) if times.isdecimal() and len(times) < 9 else 1), _MOST_ROWS)
        if _attribute(tag[0], rb"\w+:visibility") in {"collapse", "filter"}:
            numbers.update(range(number + 1, last + 1))
        number = last
    return hidden


def _tags(archive: zipfile.ZipFile, path: str, name: bytes) -> list[bytes]:
    """Returns the opening tags of a name in a part."""
    return re.findall(rb"<(?:\w+:)?" + name + rb"\s[^<>]*", archive.read(path))


def _attribute(tag: bytes, name: bytes) -> str:
    """Returns an attribute of a tag; empty if it has none."""
    found = re.search(rb"\s" + name + rb"""=(?:"([^"]*)"|'([^']*)')""", tag)
    return html.unescape((found[1] or found[2] or b"").decode(errors="replace")) if found else ""


def _cut(rows: list[tuple[int, list[str]]]) -> Iterator[list[tuple[int, list[str]]]]:
    """Yields the rows in pieces for one line each."""
    some: list[tuple[int, list[str]]] = []
    characters = 0
    for row in rows:
        some.append(row)
        characters += sum(map(len, row[1])) + len(row[1])
        if characters >= _CHARACTERS_A_LINE:
            yield some
            some, characters = [], 0
    if some:
        yield some


def _rows(sheet: CalamineSheet, limits: _Limits, characters: int) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows of a sheet except blank ones. `characters` is the number in the sheets before it."""
    rows = 0
    for number, values in enumerate(sheet.iter_rows(), 1):
        cells = [_text(value) for value in values]
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            continue
        if len(cells) > limits.columns:
            raise _Refused("columns", limits.columns, number)
        if max(map(len, cells)) > limits.cell:
            raise _Refused("cell", limits.cell, number)
        rows += 1
        characters += sum(map(len, cells))
        if rows > limits.rows:
            raise _Refused("rows", limits.rows)
        if characters > limits.characters:
            raise _Refused("characters", limits.characters)
        yield number, cells


def _text(value: Any) -> str:
    """Returns the text of a cell's value, as a spreadsheet shows it without a special format."""
    if isinstance(value, str):
        return "#VALUE!" if _NUMBERED_ERROR.fullmatch(value) else value.strip()
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**15:
        return str(int(value))
    if isinstance(value, datetime | time):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    return str(value)


if __name__ == "__main__":
    main()
