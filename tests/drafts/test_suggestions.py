"""What was probably meant by an address that is wrong."""

import pytest
from tests.drafts.conftest import finished

from largesse.drafts import mailboxes
from largesse.drafts.mailboxes import common_domains, fault_of, name_before, suggested
from largesse.drafts.mistyped import likely_domains

DOMAINS = ("acme.example", "müller.example", "acme-labs.example", "mail.acme.example")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("name@acme,example", "name@acme.example"),
        ("name@acme..example", "name@acme.example"),
        ("name @ acme.example", "name@acme.example"),
        ("name@@acme.example", "name@acme.example"),
        ("name@acme.example.", "name@acme.example"),
        ("name@acme", "name@acme.example"),
        ("name@ACME", "name@acme.example"),
        ("name@gmail", "name@gmail.com"),
        ("name.acme.example", "name@acme.example"),
        ("nameacme.example", "name@acme.example"),
        ("mailto:name@elsewhere.example", "name@elsewhere.example"),
        ("<name@elsewhere.example>;", "name@elsewhere.example"),
        ("name (at) elsewhere.example", "name@elsewhere.example"),
        ("name at elsewhere.example", "name@elsewhere.example"),
        ("name\uff20elsewhere.example", "name@elsewhere.example"),
        (".name.@elsewhere.example", "name@elsewhere.example"),
        ("", None),
        ("name", None),
        ("name@unknown", None),
        ("acme.example", None),
        ("a@b@acme.example", None),
        ("name@-acme.example", None),
        ("x" * 321, None),
        ("v2@example.com\tbo åkesson", None),
        ("v2@example.com Bo", None),
        ("Ada Byron ada@elsewhere.example", "ada@elsewhere.example"),
        ("Jürgen Müller jmuller@elsewhere.example", "jmuller@elsewhere.example"),
        ("Ada Byron <ada@elsewhere.example", "ada@elsewhere.example"),
        ("1. ada@elsewhere.example", "ada@elsewhere.example"),
        ("- ada@elsewhere.example", "ada@elsewhere.example"),
        ("• ada@acme", "ada@acme.example"),
        ("ada byron@elsewhere.example", None),
        ("a. byron@elsewhere.example", None),
        ("Ada Byron byron", None),
        ("v2@mail.acme .example", "v2@mail.acme.example"),
        ("\uff41\uff44\uff41\uff11@elsewhere.example", "ada1@elsewhere.example"),
        ("o\u2019neil@elsewhere.example", "o'neil@elsewhere.example"),
        ("ada\u2013b@acme\u2011labs.example", "ada-b@acme-labs.example"),
        ("ada@elsewhere.example;Ada", None),
        ("ada@elsewhere.example,Byron", None),
        ("ada@acme-labs,example", "ada@acme-labs.example"),
        ("ada@mail.acme,example", "ada@mail.acme.example"),
    ],
)
def test_what_was_meant_is_found(typed: str, meant: str | None) -> None:
    assert suggested(typed, DOMAINS) == meant


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Ada Byron ada@x.example", "Ada Byron"),
        ("2. Ada Byron: ada@x.example", "Ada Byron"),
        ("\u2022 Ada Byron \u2013 ada@x.example", "Ada Byron"),
        ("Byron, Ada <ada@x.example", "Ada Byron"),
        ("1. ada@x.example", ""),
        ("name (at) x.example", ""),
        ("name @ x.example", ""),
        ("mailto:name@x.example", ""),
        ("name.x.example", ""),
    ],
)
def test_a_name_before_an_address_is_kept(typed: str, name: str) -> None:
    assert name_before(typed) == name


@pytest.mark.parametrize(
    ("typed", "fault"),
    [
        ("name", "email_no_at"),
        ("a@b@example.com", "email_two_at"),
        ("a b@example.com", "email_space"),
        ("a@example,com", "email_comma"),
        ("a@example..com", "email_dots"),
        ("a.@example.com", "email_dots"),
        ("a@example", "email_domain"),
        ("@example.com", "email_wrong"),
        ("a@-x.com", "email_wrong"),
        ("a\u2013b@example.com", "email_sign"),
    ],
)
def test_what_is_wrong_is_named(typed: str, fault: str) -> None:
    assert fault_of(typed) == fault


def test_the_most_frequent_domain_comes_first() -> None:
    emails = ["a@one.example", "b@two.example", "c@two.example"]
    assert common_domains(emails) == ["two.example", "one.example"]
    assert suggested("d@t", ["two.example"]) is None
    assert len(common_domains(f"a@{n}.example" for n in range(51))) == 50


def test_a_run_of_blanks_in_an_address_takes_no_time() -> None:
    """A list of two hundred such rows kept the process from answering anybody for a minute, each time that its page was shown."""
    assert mailboxes._plain("ada" + " " * 300 + "byron") == "ada byron"
    assert suggested("ada \u3000 (at)\n  example.com") == "ada@example.com"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gmail.con", "gmail.com"),
        ("company.example.ocm", "company.example.com"),
        ("gmail.co", "gmail.com"),
        ("gmial.com", "gmail.com"),
        ("gmil.com", "gmail.com"),
        ("gmaill.com", "gmail.com"),
        ("yahho.com", "yahoo.com"),
        ("acem.example", "acme.example"),
        ("acme.exmple", None),
        ("mail.acne.example", "mail.acme.example"),
        ("mial.acme.example", "mail.acme.example"),
        ("ymail.com", None),
        ("gmail.de", None),
        ("company.co", None),
        ("hq.example", None),
        ("shop2.example", None),
        ("elsewhere.example", None),
        ("rarely.example", None),
    ],
)
def test_a_domain_that_looks_mistyped_is_found(typed: str, meant: str | None) -> None:
    usual = dict.fromkeys(("acme.example", "mail.acme.example", "hp.example", "shop1.example"), 10)
    counts = usual | {"rarily.example": 9, "gmail.com": 1, typed: 1}
    assert finished(likely_domains(counts)) == ({typed: meant} if meant else {})


def test_a_domain_of_more_than_a_tenth_of_the_addresses_is_right() -> None:
    assert finished(likely_domains({"acme.example": 20, "acne.example": 2})) == {"acne.example": "acme.example"}
    assert finished(likely_domains({"acme.example": 29, "acne.example": 3})) == {}


def test_a_domain_of_many_addresses_is_right_though_it_is_near_a_providers() -> None:
    assert finished(likely_domains({"qmail.com": 9})) == {"qmail.com": "gmail.com"}
    assert finished(likely_domains({"qmail.com": 10})) == {}
    assert finished(likely_domains({"gmail.con": 10})) == {"gmail.con": "gmail.com"}, "there is no such ending"
