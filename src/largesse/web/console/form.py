"""Forms of pages. Only this module decodes and checks the declared fields of a form.

    class InvitationForm(msgspec.Struct):
        email: Annotated[str, Email()]
        role: Annotated[str, Choice(ROLES)]

`form.read(InvitationForm)` returns an InvitationForm and adds an error to `form.errors` for each field that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, tzinfo
from datetime import time as clock_time
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_type_hints

import msgspec

from largesse.base.email import EmailError, is_mistyped, pasted_email
from largesse.base.i18n.languages import DEFAULT, Language, text
from largesse.base.text import cleaned, plain_digits, trimmed, unfit
from largesse.drafts.mailboxes import fault_of
from largesse.drafts.mistyped import likely_address
from largesse.web.console.typed_times import (
    EITHER_DAY,
    UNREAD_DAY,
    UNREAD_TIME,
    WRONG_WEEKDAY,
    Either,
    Unread,
    WrongWeekday,
    read_day,
    read_time,
)
from largesse.web.kit.query import INT32, Whole

Declared = TypeVar("Declared")
Choosable = TypeVar("Choosable", int, str)
Say = Callable[..., str]

LOCAL, DAY = "%Y-%m-%dT%H:%M", "%Y-%m-%d"  # the formats in which browsers post `datetime-local` and `date`
REQUIRED = text("Fill this in.")
# Whole numbers as people of our languages write them: 1,000 and 1.000 and 1 000 and 1'000.
_IN_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}([.,'\u2019\s])[0-9]{3}(?:\1[0-9]{3})*")
_BETWEEN_THOUSANDS = re.compile(r"[^0-9]")
# What is wrong with an address, by `fault_of`, and how to fix it.
EMAIL_FAULTS = {
    "email_no_at": text("The @ is missing, as in name@example.com."),
    "email_two_at": text("There is more than one @."),
    "email_comma": text("The part after @ has a comma."),
    "email_space": text("There is a space in the address."),
    "email_domain": text("The part after @ is incomplete."),
    "email_dots": text("There is one dot too many."),
    "email_sign": text(
        "A sign before the @ does not belong in an address, such as \u2019 for an apostrophe. Type it again."
    ),
    "email_wrong": text("Type an e-mail address, such as name@example.com."),
}
_TOO_LONG = text("This has %(found)s characters. At most %(most)s are allowed.")
_LIKELY = text("This looks mistyped. Did you mean %(meant)s? If yours is right, press the button again.")
_MOST_SAID = 60  # characters of a date that cannot be read
CHANGED = text("Somebody else changed this meanwhile. Look at how it is now, and try again.")
CHANGED_TOO = text(
    "This was changed meanwhile, by somebody else or in another window. To keep yours, press the button again. It is now: %(value)s"
)


class Text(msgspec.Struct, frozen=True):
    """A text of at most `most` characters, without blanks around it. `lines` allows line breaks. A tab, pasted from a table, is a blank."""

    most: int
    required: bool = True
    lines: bool = False

    def read(self, form: Form, name: str) -> str:
        """Returns the text, even if it is wrong."""
        value = trimmed(form[name].replace("\r\n", "\n").replace("\t", " "))
        if not value and self.required:
            form.error(name, form.say(REQUIRED))
        if len(value) > self.most:
            number = form.language.number
            form.error(name, form.say(_TOO_LONG, found=number(len(value)), most=number(self.most)))
        if unfit(value, line_breaks=self.lines):
            form.error(name, form.say("This has characters that are not allowed. Type it again."))
        return value


class Email(msgspec.Struct, frozen=True):
    """An e-mail address. `is_new`: it gets mail for the first time, so a domain that looks mistyped is questioned, once."""

    is_new: bool = False

    def read(self, form: Form, name: str) -> str:
        """Returns the normalised address; empty if it is not an e-mail address."""
        typed = trimmed(form[name])
        try:
            if not is_mistyped(email := pasted_email(typed)):
                return "" if self.is_new and form.questions(name, email) else email
        except EmailError:
            pass
        form.error(name, form.say(EMAIL_FAULTS[fault_of(typed)] if typed else REQUIRED))
        return ""


class Choice(msgspec.Struct, frozen=True):
    """One of the values offered."""

    offered: Collection[str]

    def read(self, form: Form, name: str) -> str:
        """Returns the submitted value, even if it was not offered."""
        if form[name] not in self.offered:
            form.error(name, form.say("Choose one of the options."))
        return form[name]


class Choices(msgspec.Struct, frozen=True):
    """At least one of the values offered. Each is a field of the same name."""

    offered: Collection[str]

    def read(self, form: Form, name: str) -> list[str]:
        """Returns the submitted values that were offered, in the order of the offer."""
        given = set(form.all(name))
        if not given or not given <= set(self.offered):
            form.error(name, form.say("Choose at least one of the options."))
        return [one for one in self.offered if one in given]


class Checked(msgspec.Struct, frozen=True):
    """A box or button that sends `yes`."""

    def read(self, form: Form, name: str) -> bool:
        """Returns whether `yes` was submitted."""
        return form[name] == "yes"


FieldKind = Text | Email | Choice | Choices | Checked


class Form:
    """The fields of a form by name. The methods that read a field add errors to `errors`, in the language of the page."""

    def __init__(
        self, fields: Sequence[tuple[str, str]] | Mapping[str, str], say: Say, language: Language = DEFAULT
    ) -> None:
        self._fields = list(fields.items()) if isinstance(fields, Mapping) else list(fields)
        self.say = say
        self.language = language
        self.errors: dict[str, str] = {}
        self.questioned: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return any(field == name for field, _ in self._fields)

    def __getitem__(self, name: str) -> str:
        """Returns the unchanged text of the first field with that name; empty if there is none."""
        return next((value for field, value in self._fields if field == name), "")

    @property
    def fields(self) -> list[tuple[str, str]]:
        """All names and unchanged texts."""
        return list(self._fields)

    def without(self, names: Collection[str]) -> Form:
        """Returns the same form without the fields of those names."""
        return Form([one for one in self._fields if one[0] not in names], self.say, self.language)

    def all(self, name: str) -> list[str]:
        """Returns the text of each field with that name."""
        return [value for field, value in self._fields if field == name]

    def error(self, name: str, said: str) -> None:
        """Adds the error of a field, unless it has one already."""
        self.errors.setdefault(name, said)

    def questions(self, name: str, email: str) -> bool:
        """Adds an error if the domain of a valid address looks mistyped, unless the same address was sent again after that error.

        Returns whether it added one.
        """
        meant = likely_address(email)
        if meant is None or self[f"sure_{name}"] == email:
            return False
        self.questioned[name] = email
        self.error(name, self.say(_LIKELY, meant=meant))
        return True

    @property
    def first_wrong(self) -> str:
        """Returns the name of the first field of the page that has an error, as browsers send fields in the order of the page; empty if none has."""
        return next((name for name, _ in self._fields if name in self.errors), next(iter(self.errors), ""))

    def keep_others(self, now: Mapping[str, str], said: Mapping[str, str] | None = None) -> None:
        """In fields that the person did not change, keeps what others saved since the page was opened. Adds an error to fields that both changed.

        `now` is what the fields show now. What they showed then is in fields that have `was_` before the name. `said` is how an error names a value.
        """
        for name, value in now.items():
            was, typed = (self[one].replace("\r\n", "\n") for one in (f"was_{name}", name))
            if f"was_{name}" not in self or value in (was, typed):
                continue
            if typed == was or name not in self:
                self._fields = [*self.without({name}).fields, (name, value)]
            else:
                self.error(name, self.say(CHANGED_TOO, value=(said or {}).get(value, value) or "\N{EN DASH}"))

    def keep_choices(self, name: str, now: Collection[str]) -> None:
        """Adds and removes, in the fields with that name, what others added to or removed from the selected values, which are now `now`."""
        if f"was_{name}" in self:
            kept = with_others(self.all(name), self[f"was_{name}"].split(), now)
            self._fields = [*self.without({name}).fields, *((name, one) for one in kept)]

    def numbers_and_others(self, name: str, now: Collection[int]) -> list[int]:
        """Returns the numbers in the fields with that name, with the changes of others since the page was opened: their numbers added or removed.

        `now` is what others saved. The page had what is in `was_` before the name, with blanks between.
        """
        typed = self.numbers(name)
        if f"was_{name}" not in self:
            return typed
        return with_others(typed, set(map(Whole().read, self[f"was_{name}"].split())), now)

    def read(self, declared: type[Declared]) -> Declared:
        """Returns the form as a declared type. Adds an error for each field that is wrong."""
        kinds = _kinds(cast("Hashable", declared))
        return msgspec.convert({name: kind.read(self, name) for name, kind in kinds.items()}, declared)

    def text(self, name: str, most: int, *, required: bool = True, lines: bool = False) -> str:
        """Returns a text, as `Text` reads it."""
        return Text(most, required, lines).read(self, name)

    def email(self, name: str, *, is_new: bool = False) -> str:
        """Returns an e-mail address, as `Email` reads it."""
        return Email(is_new).read(self, name)

    def choice(self, name: str, offered: Collection[str]) -> str:
        """Returns one of the values offered, as `Choice` reads it."""
        return Choice(offered).read(self, name)

    def number(self, name: str, highest: int = INT32) -> int | None:
        """Returns a whole number from 0 to `highest`, such as an id, `1,000` or digits of any script; None for anything else."""
        typed = plain_digits(trimmed(self[name]))
        return Whole(highest).read(_BETWEEN_THOUSANDS.sub("", typed) if _IN_THOUSANDS.fullmatch(typed) else typed)

    def time(self, name: str, zone: tzinfo) -> datetime | None:
        """Returns a time typed in a zone, in UTC; None for anything else. Adds an error for a text that is no time."""
        return _in_utc(self._typed(name, LOCAL, read_time, UNREAD_TIME, zone))

    def day(self, name: str) -> date | None:
        """Returns a day; None for anything else. Adds an error for a text that is no day."""
        at = self._typed(name, DAY, lambda *typed: datetime.combine(read_day(*typed), clock_time()), UNREAD_DAY, UTC)
        return at and at.date()

    def end_of_day(self, name: str, zone: tzinfo) -> datetime | None:
        """Returns the end of a day typed in a zone, in UTC. If clocks go back in its last hour, returns the later end.

        Returns None for anything else. Adds an error for a text that is no day.
        """
        day = self.day(name)
        return _in_utc(datetime.combine(day, clock_time(23, 59, 59, fold=1, tzinfo=zone)) if day else None)

    def _typed(
        self, name: str, posted: str, read: Callable[[str, Language], datetime], unread: str, zone: tzinfo
    ) -> datetime | None:
        """Returns what a browser posted in that format, or what somebody typed, in a zone. Adds an error for any other text."""
        typed = self[name].strip()
        with suppress(ValueError):
            return datetime.strptime(typed, posted).replace(tzinfo=zone)
        try:
            return read(typed, self.language).replace(tzinfo=zone)
        except Either as either:
            one, other = map(self.language.day, either.args)
            self.error(name, self.say(EITHER_DAY, typed=typed, one=one, other=other))
        except WrongWeekday as wrong:
            (day,) = wrong.args
            weekday = self.language.locale.days["format"]["wide"][day.weekday()]
            self.error(name, self.say(WRONG_WEEKDAY, day=self.language.day(day), weekday=weekday))
        except Unread:
            if typed:
                self.error(name, self.say(unread, typed=cleaned(typed, "")[:_MOST_SAID]))
        return None

    def numbers(self, name: str) -> list[int]:
        """Returns the whole numbers in the fields with that name, such as ids. Skips everything else."""
        return [number for typed in self.all(name) if (number := Whole().read(typed)) is not None]


def _in_utc(at: datetime | None) -> datetime | None:
    """Returns the instant in UTC; None if UTC has no such year."""
    with suppress(OverflowError):
        return at and at.astimezone(UTC)
    return None


def with_others(
    typed: Sequence[Choosable], was: Collection[Choosable | None], now: Collection[Choosable]
) -> list[Choosable]:
    """Returns what a person selected, with what others added to `was` or removed from it, which is now `now`."""
    return [one for one in typed if one in now or one not in was] + [
        one for one in now if one not in was and one not in typed
    ]


@cache
def _kinds(declared: Any) -> dict[str, FieldKind]:
    return {name: get_args(hint)[1] for name, hint in get_type_hints(declared, include_extras=True).items()}
