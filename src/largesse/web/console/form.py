"""A form: what was typed, read field by field, and what is wrong with each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from largesse.base.email import EmailError, normalise_email
from largesse.base.i18n.templates import text
from largesse.base.text import unfit

Say = Callable[..., str]

# Named so by the parts of templates that show a form.
REQUIRED = text("Fill this in.")
_TOO_LONG = text("This has %(found)s characters; at most %(most)s are allowed.")
_UNFIT = text("This holds characters that may not be in it. Type it again.")
_NO_EMAIL = text("This is not an e-mail address, such as name@example.com.")
_NOT_OFFERED = text("Choose one of those offered.")


class Form:
    """The fields of a form by name. Each reading notes in `errors` what is wrong, in the language of the page."""

    def __init__(self, fields: Sequence[tuple[str, str]] | Mapping[str, str], say: Say) -> None:
        self._fields = list(fields.items()) if isinstance(fields, Mapping) else list(fields)
        self._say = say
        self.errors: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return any(field == name for field, _ in self._fields)

    def __getitem__(self, name: str) -> str:
        """What was typed into the first field of that name, as it was; empty where there is none."""
        return next((value for field, value in self._fields if field == name), "")

    @property
    def fields(self) -> list[tuple[str, str]]:
        """All that was typed, as it was."""
        return list(self._fields)

    def without(self, names: Collection[str]) -> Form:
        """The same form without the fields of those names."""
        return Form([one for one in self._fields if one[0] not in names], self._say)

    def all(self, name: str) -> list[str]:
        """What was typed into each field of that name."""
        return [value for field, value in self._fields if field == name]

    def error(self, name: str, said: str) -> None:
        """Notes what is wrong with a field, where nothing is noted yet."""
        self.errors.setdefault(name, said)

    def text(self, name: str, most: int, *, required: bool = True, lines: bool = False) -> str:
        """A text of at most so many characters, without blanks around it; `lines` may be broken."""
        value = self[name].replace("\r\n", "\n").strip()
        if not value and required:
            self.error(name, self._say(REQUIRED))
        if len(value) > most:
            self.error(name, self._say(_TOO_LONG, found=len(value), most=most))
        if unfit(value, line_breaks=lines):
            self.error(name, self._say(_UNFIT))
        return value

    def email(self, name: str) -> str:
        """An e-mail address in its normal form."""
        value = self[name].strip()
        if not value:
            self.error(name, self._say(REQUIRED))
            return ""
        try:
            return normalise_email(value)
        except EmailError:
            self.error(name, self._say(_NO_EMAIL))
            return ""

    def choice(self, name: str, offered: Collection[str]) -> str:
        """One of those offered."""
        value = self[name]
        if value not in offered:
            self.error(name, self._say(_NOT_OFFERED))
        return value
