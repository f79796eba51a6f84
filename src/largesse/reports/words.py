"""By which words an order is found: how texts are taken apart, alike when they are kept and when they are asked for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from largesse.base.email import email_key

MAX_WORD = 64  # characters; of longer ones the first so many
_SHORTEST = 2
_PARTS = re.compile(r"[^\W_]+")


def plain(text: str) -> str:
    """A text without regard to letter case and accents: `Zoë` is `zoe`."""
    if text.isascii():
        return text.lower()
    split = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in split if not unicodedata.combining(character))


def words_of(text: str | None) -> set[str]:
    """The words of a text, plain; single characters are none."""
    found = _PARTS.findall(plain(text)) if text else ()
    return {word[:MAX_WORD] for word in found if len(word) >= _SHORTEST}


def whole(text: str) -> str:
    """An address or a reference as it is found when it is asked for whole, or by how it begins."""
    return email_key(text.strip())


def words_of_recipient(email: str | None, name: str | None) -> Iterator[str]:
    """By which words a recipient is found: the address, the parts of it before the @, and the name."""
    if email:
        yield whole(email)
        yield from words_of(email.rpartition("@")[0])
    yield from words_of(name)


def words_of_order(
    reference: str | None, texts: Iterable[str | None], recipients: Iterable[tuple[str | None, str | None]]
) -> set[str]:
    """All words an order is found by: the caller's reference, texts, and recipients, each an address and a name."""
    words = {whole(reference), *words_of(reference)} if reference else set()
    for text in texts:
        words |= words_of(text)
    for email, name in recipients:
        words.update(words_of_recipient(email, name))
    words.discard("")
    return words
