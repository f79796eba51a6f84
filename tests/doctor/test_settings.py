"""Doubts about settings: the right ones are named, good ones are left in peace, and no secret is repeated."""

import pytest

from largesse.base.settings import load_settings, setting_names
from largesse.doctor.checks import CheckResult, Level
from largesse.doctor.settings import doubtful_proxies, doubtful_settings, read_settings, unknown_settings

GOOD = {
    "LARGESSE_PUBLIC_URL": "https://gifts.example.com",
    "LARGESSE_MAIL_FROM": "Largesse <gifts@example.com>",
    "LARGESSE_SMTP_URL": "smtp://ada:secret@mail.example.com",
}


def doubts(**changes: str | None) -> list[CheckResult]:
    environ = {**GOOD, **{f"LARGESSE_{name}": value for name, value in changes.items()}}
    return doubtful_settings(load_settings({name: value for name, value in environ.items() if value is not None}))


def test_a_good_configuration_is_left_in_peace() -> None:
    assert doubts() == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PUBLIC_URL", None, "this machine alone"),
        ("PUBLIC_URL", "http://127.0.0.1:8000", "this machine alone"),
        ("PUBLIC_URL", "https://localhost", "this machine alone"),
        ("PUBLIC_URL", "https://LOCALHOST.:8443", "this machine alone"),
        ("PUBLIC_URL", "https://gifts.localhost/x", "this machine alone"),
        ("PUBLIC_URL", "https://[::1]/", "this machine alone"),
        ("PUBLIC_URL", "https://0.0.0.0", "this machine alone"),
        ("PUBLIC_URL", "https://10.1.2.3", "own network"),
        ("PUBLIC_URL", "https://intranet", "own network"),
        ("PUBLIC_URL", "https://gifts.internal", "own network"),
        ("PUBLIC_URL", "http://gifts.example.com", "in clear"),
        ("MAIL_FROM", None, "localhost is not a domain"),
        ("MAIL_FROM", "gifts@mail", "mail is not a domain"),
        ("MAIL_FROM", "gifts@[127.0.0.1]", "is not a domain"),
        ("SMTP_URL", None, "held until one is"),
        ("SMTP_URL", "smtp://mail.example.com", "may travel in clear to mail.example.com"),
        ("SMTP_URL", "smtp://mail.example.com?starttls=never", "PINs travel in clear"),
        ("SMTP_URL", "smtp://ada:secret@mail.example.com?starttls=never", "The password, codes"),
        ("WEBHOOK_ALLOWED_NETWORKS", "10.0.0.0/8", "for development"),
    ],
)
def test_what_is_hardly_meant_is_named_with_what_to_do(name: str, value: str | None, said: str) -> None:
    [finding] = doubts(**{name: value})
    assert (finding.level, finding.setting) == (Level.WARNING, f"LARGESSE_{name}")
    assert said in finding.text
    assert "secret" not in finding.text
    assert "\n" not in finding.text


@pytest.mark.parametrize(
    "url",
    [
        "smtps://mail.example.com",
        "smtp://mail.example.com?starttls=required",
        "smtp://127.0.0.1:2525",
        "smtp://localhost",
    ],
)
def test_mail_that_is_encrypted_or_stays_on_the_machine_is_fine(url: str) -> None:
    assert doubts(SMTP_URL=url) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LARGESSE_SMTP", "LARGESSE_SMTP_URL"),
        ("LARGESSE_DB_URL", "LARGESSE_DATABASE_URL"),
        ("LARGESSE_PUBLICURL", "LARGESSE_PUBLIC_URL"),
        ("LARGESSE_master_key", "LARGESSE_MASTER_KEY"),
        ("LARGESSE_MASTERKEY", "LARGESSE_MASTER_KEY"),
        ("LARGESSE_XYZZY", None),
        ("LARGESSE_SERVE_PORT", None),  # an option of `serve`
        ("Largesse_Public_Url", "LARGESSE_PUBLIC_URL"),
    ],
)
def test_an_unknown_setting_is_named_with_the_one_that_was_meant(name: str, meant: str | None) -> None:
    [finding] = unknown_settings({**GOOD, name: "secret", "PATH": "/bin"})
    assert (finding.level, finding.setting) == (Level.WARNING, name)
    assert finding.text == "There is no such setting." + (f" Did you mean {meant}?" if meant else "")


def test_every_setting_is_known_and_blanks_are_unset() -> None:
    assert (
        unknown_settings(dict.fromkeys([*setting_names(), "LARGESSE_SERVE_WITH_WORKER", "LARGESSE_MCP_TOKEN"], "x"))
        == []
    )
    assert unknown_settings({"LARGESSE_XYZZY": " "}) == []


def test_all_malformed_settings_are_named_and_the_others_are_read() -> None:
    settings, findings = read_settings(
        {**GOOD, "LARGESSE_WEBHOOK_TIMEOUT": "secret", "LARGESSE_DATABASE_URL": "secret", "LARGESSE_RATE_LIMIT": "7"}
    )
    assert [(f.level, f.setting) for f in findings] == [
        (Level.ERROR, "LARGESSE_DATABASE_URL"),
        (Level.ERROR, "LARGESSE_WEBHOOK_TIMEOUT"),
    ]
    assert not any("secret" in finding.text for finding in findings)
    assert settings.rate_limit == 7
    assert settings.public_url == "https://gifts.example.com"
    assert settings.database_url is None


def test_a_malformed_secret_of_a_file_is_named_by_its_setting() -> None:
    environ = {**GOOD, "LARGESSE_MASTER_KEY_FILE": "/no/such/file"}
    _, [finding] = read_settings(environ)
    assert (finding.level, finding.setting) == (Level.ERROR, "LARGESSE_MASTER_KEY")
    assert unknown_settings(environ) == []


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (" ", ["It is empty"]),
        ("127.0.0.1, 10.0.0.0/8,::1", []),
        ("*", ["* believes everybody"]),
        ("10.0.0.1/8, proxy,*", ["'10.0.0.1/8' is no", "'proxy' is no", "'*' is no"]),
    ],
)
def test_proxies_that_everybody_or_nobody_is_are_named(named: str, said: list[str]) -> None:
    """The server takes any text without a word."""
    found = list(doubtful_proxies({"FORWARDED_ALLOW_IPS": named}))
    assert [part in one.text for part, one in zip(said, found, strict=True)] == [True] * len(said)
    assert not list(doubtful_proxies({})), "those of this machine"
