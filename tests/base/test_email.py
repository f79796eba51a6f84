"""The quick way for plain addresses agrees with the library."""

import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import example, given
from hypothesis import strategies as st

from largesse.base.email import _PLAIN, EmailError, normalise_email, pasted_email, typed_key

# Texts near what the quick way accepts, and over its edges.
labels = st.text("aZ09-", min_size=1, max_size=5) | st.sampled_from(
    ["a" * 63, "a" * 64, "xn--bcher-kva", "a--b", "-a", "a-", "9"]
)
unicode_labels = labels | st.sampled_from(
    [
        "b\u00fccher",
        "\u0434\u0435\u0440\u0435\u0432\u043e",
        "\u0430" * 40,
        "\u05d0\u05d1",
        "1",
        "\u00ad",
        "\uff21",
        "xn--d1acufc",
        "a\u3002b",
    ]
)
tops = st.sampled_from(["com", "Example", "test", "invalid", "localhost", "arpa", "local", "onion", "TEST"]) | (
    st.text("aZ9-", min_size=1, max_size=5)
)
locals_ = st.text("aZ09._+-", min_size=1, max_size=6) | st.sampled_from(
    ["a" * 64, "a" * 65, ".a", "a.", "a..b", "o'neil", '"a b"', "\u00e9"]
)
any_locals = locals_ | st.sampled_from(
    [
        "\u00e9" * 30,
        "e\u0301" * 20,
        "\u0958" * 15,
        "so\u0308ren",
        "POSTMASTER",
        "<a",
        "a>",
        "a b",
        '"a"',
        "a@b",
        "A <a",
        "(c)a",
    ]
)
near = st.builds(
    lambda local, middle, top: f"{local}@{'.'.join([*middle, top])}",
    any_locals,
    st.lists(unicode_labels, min_size=0, max_size=4),
    tops,
)


def by_library(text: str) -> str | None:
    try:
        return validate_email(text, check_deliverability=False, test_environment=True).normalized
    except EmailNotValidError:
        return None


def by_us(text: str) -> str | None:
    try:
        return normalise_email(text)
    except EmailError:
        return None


@pytest.mark.long
@given(near | st.emails() | st.text(max_size=30) | st.from_regex(_PLAIN, fullmatch=True))
@example("Sam.Smith+tag@Mail.Example.COM")
@example("a@b.c")
@example("a@b.co\n")
@example("a@-b.co")
@example("a@1.2.3.com")
@example("a" * 64 + "@" + "b" * 63 + ".co")
@example("a@" + ".".join(["b" * 40] * 5) + ".co")
@example("a@x.invalid")
@example("a@in-addr.arpa")
@example("a@b.local")
@example("a" * 60 + "@" + ".".join(["\u0430" * 40] * 4) + ".co")
@example("a" * 60 + "@" + ".".join(["\u0430" * 30] * 4) + ".com")
@example("\u0958" * 21 + "@" + ".".join(["\u0430" * 30] * 3) + ".com")
@example("sam@b\u00fccher.test")
def test_an_address_is_accepted_and_normalised_as_the_library_does(text: str) -> None:
    assert by_us(text) == by_library(text)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Sam@EXAMPLE.com", "Sam@example.com"),
        ("sam@example.test", "sam@example.test"),
        ("o'neil@example.com", "o'neil@example.com"),
        ("sam@b\u00fccher.example.com", "sam@b\u00fccher.example.com"),
        ("so\u0308ren@example.com", "s\u00f6ren@example.com"),
        ("sam@xn--bcher-kva.example.com", "sam@b\u00fccher.example.com"),
    ],
)
def test_what_is_kept_of_an_address(text: str, kept: str) -> None:
    assert normalise_email(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        "sam",
        "sam@",
        "@example.com",
        "sam@example",
        "sam@localhost",
        "sam@x.localhost",
        "sam@example.invalid",
        "sam@[127.0.0.1]",
        "sam@127.0.0.1",
        "Sam <sam@example.com>",
        "sam@example.com,kim@example.com",
        "sam@example.com\r\nBcc: kim@example.com",
        "sam@exam ple.com",
        "sam@@example.com",
        "sam@ex@mple.com",
        ".sam@example.com",
        "sam..s@example.com",
        "sam@example..com",
        "sam@-example.com",
        "s\x00m@example.com",
        "\ud800@example.com",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(EmailError):
        normalise_email(text)


@pytest.mark.parametrize(
    "pasted",
    [
        " ada@example.com\xa0",
        "Ada Byron <ada@example.com>",
        "<mailto:ada@example.com>;",
        "MAILTO:ada@example.com",
        "\u201cada@example.com\u201d,",
        '"ada@example.com".',
        "ada@exam\u200bple.com",
    ],
)
def test_a_pasted_address_is_read_without_what_is_around_it(pasted: str) -> None:
    assert (pasted_email(pasted), typed_key(pasted)) == ("ada@example.com", "ada@example.com")


@pytest.mark.parametrize(
    "pasted",
    ["", "ada", "ada@example", "ada @example.com", "a@example.com, b@example.com", "a@b@example.com", "<" * 600],
)
def test_what_is_not_one_address_is_refused_as_before(pasted: str) -> None:
    with pytest.raises(EmailError):
        pasted_email(pasted)
