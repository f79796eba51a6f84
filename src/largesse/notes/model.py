"""The rules for the text of a thank-you note. People trust what their recipients write, so a note must have no links."""

import re
import unicodedata
from datetime import datetime
from typing import NamedTuple

from largesse.base.errors import InvalidRequest
from largesse.base.text import trimmed, unfit

MOST_CHARACTERS = 500
# How long a text is examined at all. A letter with its accents may be typed as several characters; to order thousands of them takes long.
_MOST_TYPED = 4 * MOST_CHARACTERS
# Endings of hosts that mail programs turn into links. With a path or an @, they turn any host into a link.
_ENDINGS = (
    "com|net|org|edu|gov|info|biz|io|co|app|dev|link|click|shop|site|online|store|top|xyz|club|live|page|web|tech|icu|vip|win|zip|mov"
    "|uk|de|fr|eu|ch|nl|ru|cn|ly|gl|gd|cc|ws|tk|ga|cf|ml|gq"
)
# Each part matches only one character of a name: if it matched whole names, the search in a long word would take seconds.
_LINK = re.compile(
    r"\w://|\bwww\.|\b(?:mailto|tel|javascript|data):|\S@\S+\.\S"
    rf"|[\w-]\.(?:[^\W\d_]{{2,}}[/?#]|(?:{_ENDINGS})\b)|\b\d{{1,3}}(?:\.\d{{1,3}}){{3}}\b"
)
# Characters that browsers read as a full stop in a host (UTS 46), and invisible characters, which are removed.
_STOPS = str.maketrans(
    dict.fromkeys("\u3002\uff0e\uff61\u2024", ".") | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff")
)


class NoteTooLong(InvalidRequest, rule=f"`note` must have at most {MOST_CHARACTERS} characters."):
    """The note has more characters than it may."""


class NoteWithLink(InvalidRequest, rule="`note` must not contain a link or an address."):
    """The note holds a link or an address."""


class Note(NamedTuple):
    """A note as people read it. `reference` names the order, `number` the line, and `name` and `email` the recipient, if they are known."""

    id: int
    reference: str
    number: int
    name: str | None
    email: str | None
    text: str
    written_at: datetime


def read_note(typed: str) -> str:
    """Returns the text of a note without blanks around it, and with a blank for each tab.

    Raises NoteTooLong, NoteWithLink, and InvalidRequest for characters that no text may contain.
    """
    if len(typed) > _MOST_TYPED:
        raise NoteTooLong
    text = trimmed(unicodedata.normalize("NFC", typed.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")))
    if len(text) > MOST_CHARACTERS:
        raise NoteTooLong
    if (found := unfit(text, line_breaks=True)) is not None:
        raise InvalidRequest(f"`note` must not contain {found}.")
    if has_link(text):
        raise NoteWithLink
    return text


def has_link(text: str) -> bool:
    """Returns whether a mail program may turn a part of the text into a link."""
    plain = unicodedata.normalize("NFKC", text.translate(_STOPS)).translate(_STOPS).casefold()
    return _LINK.search(plain) is not None
