"""What a thank-you note may hold."""

import re
import time
from collections.abc import Callable

import pytest

from largesse.base.errors import InvalidRequest
from largesse.notes.model import NoteTooLong, NoteWithLink, has_link, read_note


def test_a_note_of_accents_alone_is_too_long_before_they_are_ordered() -> None:
    with pytest.raises(NoteTooLong):
        read_note("a" + "\u0301\u0316" * 250_000)


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example/x",
        "see http://10.0.0.1",
        "HTTPS://EVIL.EXAMPLE",
        "ftp://files",
        "www.evil",
        "go to evil.com now",
        "evil.example/claim",
        "Evil\uff0ecom",
        "evil\u3002com",
        "ev\u200bil.com",
        "\uff45\uff56\uff49\uff4c.com",
        "evil.co.uk",
        "write to sam@example.org",
        "mailto:sam",
        "javascript:alert(1)",
        "tel:0900",
        "203.0.113.7",
        "bit.ly/x",
        "(evil.com)",
        "_evil.com",
        "a_.b-.de",
        "http-evil-.example?x",
    ],
)
def test_what_a_mail_program_makes_a_link_of_is_refused(text: str) -> None:
    assert has_link(text)
    with pytest.raises(NoteWithLink):
        read_note(text)


@pytest.mark.parametrize(
    "text",
    [
        "Thank you!",
        "Thanks... it was lovely. Really.",
        "Thank you.It came today.",
        "You paid £12.50, and I paid 3.5 of it",
        "At 10:30 we had coffee; e.g. two cups",
        "a/b or c",
        "me @ the office",
        "<b>Merci</b> — ¡gracias! Grüße, 谢谢, شكرا",
        "two\nlines",
    ],
)
def test_other_texts_are_notes(text: str) -> None:
    assert read_note(text) == text


def test_a_note_has_at_most_500_characters() -> None:
    assert read_note("é" * 500) == "é" * 500
    assert read_note("e\u0301" * 500) == "é" * 500
    assert read_note(f"  {'x' * 500}\r\n") == "x" * 500
    with pytest.raises(NoteTooLong):
        read_note("x" * 501)


@pytest.mark.parametrize("text", ["\u3316", "\u3316.", "\u3316-", "a.", "a@", "1."])
def test_no_note_takes_long_to_look_through(text: str) -> None:
    """Beside a search for one character in as many. U+3316 becomes six letters: a note of it kept the process from answering anybody."""
    note, simple = (text * 500)[:500], re.compile("[.,]")
    assert least_s(lambda: has_link(note)) < 300 * least_s(lambda: simple.search("x" * 3_000))


def least_s(work: Callable[[], object]) -> float:
    """The least processor time of several tries, which other programs do not lengthen."""

    def try_s() -> float:
        began_s = time.thread_time()
        work()
        return time.thread_time() - began_s

    return min(try_s() for _ in range(5))


def test_blanks_are_no_note_and_line_breaks_are_one_character() -> None:
    assert read_note(" \r\n ") == ""
    assert read_note("a\r\nb\rc") == "a\nb\nc"
    assert read_note("\u200ea\tb\ufeff ") == "a b", "invisible characters around it, and a tab"


@pytest.mark.parametrize("text", ["a\x00b", "a\x1bb", "a\u202eb"])
def test_what_no_text_for_people_may_hold_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_note(text)
