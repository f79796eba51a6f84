"""Errors of uploaded files, in the language of the page. They never repeat a number or a name from the file."""

from collections.abc import Mapping

from largesse.base.errors import FileRefused
from largesse.base.i18n.languages import text
from largesse.base.text import cleaned
from largesse.web.console.context import note_no_file
from largesse.web.office.context import OfficeContext

_MOST_NAME = 100  # the most characters of a file name that pages show
_TOO_LARGE = text("The file is larger than %(most)s MB.")
_REFUSED: Mapping[str, str] = {
    "empty": text("Line %(line)s has nothing in the column %(column)s."),
    "encoding": text(
        "Line %(line)s: the letters of a number or PIN cannot be read for certain. Save the file as CSV in UTF-8."
    ),
    "formula": text(
        "Line %(line)s has a spreadsheet's error text, such as #N/A or ####. Correct it there, and save the file again."
    ),
    "heading_twice": text("The heading names the column %(column)s twice. Rename or remove one of them."),
    "no_camt": text("This is neither a CSV file nor a CAMT file."),
    "no_csv": text("This is not a CSV file."),
    "no_heading": text(
        "The first line must be a heading. These columns are missing: %(lacks)s. It may have: %(may_have)s."
    ),
    "no_parcel": text("Line %(line)s names no parcel."),
    "no_text": text("This is not a text file. Save it as CSV in UTF-8."),
    "no_transfers": text("The file has a heading, but no transfers below it."),
    "no_value": text("Line %(line)s does not say what the number is worth. Add a column “value”, or choose an amount."),
    "number": text("Line %(line)s: a number has at most %(most)s characters, all of them printable."),
    "other_format": text(
        "This file has the format %(format)s. Import the CSV or CAMT file that the bank offers beside it."
    ),
    "other_value": text("Line %(line)s has an amount at which this gift is not sold."),
    "over": text("The last day in line %(line)s has passed."),
    "shortened": text(
        "Line %(line)s has a number that a spreadsheet shortened to one such as 1.23E+11. Make its column text there, and save the file again."
    ),
    "too_large": _TOO_LARGE,
    "too_long": text("Line %(line)s has a text of more than %(most)s characters."),
    "too_many_lines": text("The file has more than %(most)s lines. Split it."),
    "too_wide": text("Line %(line)s has more columns than the heading, or more than %(most)s."),
    "total": text("Line %(line)s is a sum, not a number. Remove it."),
    "twice": text("Line %(line)s contradicts line %(first)s about a parcel."),
    "use_by": text("Line %(line)s: write the last day as 2030-12-31."),
    "value": text("Line %(line)s has an amount that cannot be read."),
    "all_other_value": text("This gift is sold at %(amounts)s."),
    "all_value": text("The amount cannot be read."),
}


def file_name(context: OfficeContext) -> str:
    """Returns the name of the uploaded file; empty if none was uploaded."""
    return cleaned(context.file_names.get("file", ""), "")[:_MOST_NAME]


def refused(context: OfficeContext, refusal: FileRefused) -> str:
    """Returns why a file was refused, in the language of the page, with its name. What is wrong with a field, or was typed, names no file."""
    numbers = {
        name: context.language.number(value) if isinstance(value, int) else value
        for name, value in refusal.values.items()
    }
    said, name = context.say(_REFUSED[refusal.code], **numbers), file_name(context)
    if not name or refusal.code.startswith("all_"):
        return said
    return context.say("%(file)s: %(said)s", file=name, said=said)


def uploaded(context: OfficeContext, most_bytes: int) -> bytes | None:
    """Returns the file of the form; None, with an error in the form, if it is missing or too large."""
    content = context.files.get("file", b"")
    if not content:
        note_no_file(context)
    elif len(content) > most_bytes:
        context.form.error("file", context.say(_TOO_LARGE, most=most_bytes // 1024 // 1024))
    else:
        return content
    return None
