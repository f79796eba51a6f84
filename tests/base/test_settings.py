import base64
import ipaddress
from pathlib import Path

import pytest

from largesse.base.errors import OperatorError
from largesse.base.settings import SettingError, load_settings, secret_names

KEY, OTHER = bytes(range(32)), bytes(range(32, 64))
KEY_TEXT = base64.b64encode(KEY).decode()


def test_the_defaults() -> None:
    settings = load_settings({})
    assert settings.database_url is None
    assert settings.data_dir == Path.cwd() / "largesse-data"
    assert settings.environment == "production"
    assert settings.public_url == "http://127.0.0.1:8000"
    assert settings.master_keys == ()
    assert settings.smtp_url is None
    assert settings.mail_from == "Largesse <gifts@localhost>"
    assert settings.webhook_allowed_networks == ()
    assert settings.webhook_timeout_s == 15.0
    assert settings.rate_limit == 0
    assert settings.docs_url is None


def test_each_environment_has_an_address_for_its_links() -> None:
    production, staging = "https://gifts.example.com", "https://staging.example.com/gifts"
    urls = {"LARGESSE_PUBLIC_URL": production, "LARGESSE_STAGING_PUBLIC_URL": f"{staging}/"}
    for environment, own in (("production", production), ("staging", staging)):
        settings = load_settings({**urls, "LARGESSE_ENVIRONMENT": environment})
        assert settings.public_url == own
        assert settings.public_url_of("production") == production
        assert settings.public_url_of("staging") == staging
    alone = load_settings({"LARGESSE_PUBLIC_URL": production, "LARGESSE_ENVIRONMENT": "staging"})
    assert alone.public_url == alone.public_url_of("production") == alone.public_url_of("staging") == production


def test_blank_is_unset() -> None:
    names = [
        "LARGESSE_DATABASE_URL",
        "LARGESSE_DATA_DIR",
        "LARGESSE_ENVIRONMENT",
        "LARGESSE_PUBLIC_URL",
        "LARGESSE_MASTER_KEY",
        "LARGESSE_SMTP_URL",
        "LARGESSE_MAIL_FROM",
        "LARGESSE_WEBHOOK_ALLOWED_NETWORKS",
        "LARGESSE_WEBHOOK_TIMEOUT",
        "LARGESSE_DOCUMENTATION_URL",
    ]
    assert load_settings(dict.fromkeys(names, " ")) == load_settings({})


def test_all_that_can_be_set() -> None:
    settings = load_settings(
        {
            "LARGESSE_DATABASE_URL": "postgresql://user:password@host:5432/database",
            "LARGESSE_DATA_DIR": "/srv/data",
            "LARGESSE_ENVIRONMENT": "staging",
            "LARGESSE_PUBLIC_URL": "https://gifts.example.com/",
            "LARGESSE_MASTER_KEY": f"{KEY_TEXT}, {OTHER.hex()}",
            "LARGESSE_SMTP_URL": "smtp://user:password@mail.example.com:587?starttls=required",
            "LARGESSE_MAIL_FROM": "Gifts <gifts@example.com>",
            "LARGESSE_WEBHOOK_ALLOWED_NETWORKS": "::ffff:127.0.0.0/104, fd00::/8,",
            "LARGESSE_WEBHOOK_TIMEOUT": "2.5",
            "LARGESSE_DOCUMENTATION_URL": "https://docs.example.com/",
        }
    )
    assert settings.database_url == "postgresql://user:password@host:5432/database"
    assert settings.data_dir == Path("/srv/data")
    assert settings.environment == "staging"
    assert settings.public_url == "https://gifts.example.com"
    assert settings.master_keys == (KEY, OTHER)
    assert settings.smtp_url == "smtp://user:password@mail.example.com:587?starttls=required"
    assert settings.mail_from == "Gifts <gifts@example.com>"
    assert settings.webhook_allowed_networks == (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("fd00::/8"))
    assert settings.webhook_timeout_s == 2.5
    assert settings.docs_url == "https://docs.example.com"


def test_the_sender_at_a_domain_of_another_alphabet_is_one_that_mail_servers_take() -> None:
    given = {"LARGESSE_MAIL_FROM": "Bücher <gifts@bücher.example>"}
    assert load_settings(given).mail_from == "Bücher <gifts@xn--bcher-kva.example>"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LARGESSE_DATABASE_URL", "mysql://secret@host/database"),
        ("LARGESSE_DATABASE_URL", "secret-host"),
        ("LARGESSE_ENVIRONMENT", "secret"),
        ("LARGESSE_ENVIRONMENT", "Production"),
        ("LARGESSE_PUBLIC_URL", "gifts.secret.com"),
        ("LARGESSE_PUBLIC_URL", "ftp://gifts.secret.com"),
        ("LARGESSE_STAGING_PUBLIC_URL", "ftp://gifts.secret.com"),
        ("LARGESSE_PUBLIC_URL", "https://gifts.secret.com/?x=1"),
        ("LARGESSE_PUBLIC_URL", "https://gifts.secret.com/#x"),
        ("LARGESSE_PUBLIC_URL", "https://gifts.secret.com/#"),
        ("LARGESSE_PUBLIC_URL", "https://gifts.secret.com/?"),
        ("LARGESSE_PUBLIC_URL", "https://[secret"),
        ("LARGESSE_PUBLIC_URL", "https://gifts.secret.com:99999"),
        ("LARGESSE_PUBLIC_URL", "https://:443"),
        ("LARGESSE_PUBLIC_URL", "https://user:secret@gifts.example.com"),
        ("LARGESSE_PUBLIC_URL", "https://gifts secret.com"),
        ("LARGESSE_PUBLIC_URL", "https://secret.bücher.example"),
        ("LARGESSE_PUBLIC_URL", "https://secret.example/подарки"),
        ("LARGESSE_PUBLIC_URL", "https://gifts.secret.com/a\nb"),
        ("LARGESSE_PUBLIC_URL", 'https://gifts.secret.com/"x'),
        ("LARGESSE_MASTER_KEY", "secret"),
        ("LARGESSE_MASTER_KEY", base64.b64encode(b"secret" * 5).decode()),
        ("LARGESSE_MASTER_KEY", base64.b64encode(b"s" * 33).decode()),
        ("LARGESSE_MASTER_KEY", f"{KEY_TEXT},secret"),
        ("LARGESSE_MASTER_KEY", "z" * 64),
        ("LARGESSE_MASTER_KEY", "\u00e9" * 43),
        ("LARGESSE_MASTER_KEY", f"{KEY_TEXT};{KEY_TEXT}"),
        ("LARGESSE_SMTP_URL", "mail.secret.com"),
        ("LARGESSE_SMTP_URL", "http://mail.secret.com"),
        ("LARGESSE_SMTP_URL", "smtp://"),
        ("LARGESSE_SMTP_URL", "smtp://mail.secret.com:mail"),
        ("LARGESSE_SMTP_URL", "smtp://[secret"),
        ("LARGESSE_SMTP_URL", "smtp://mail.secret.com?starttls=require"),
        ("LARGESSE_SMTP_URL", "smtp://mail.secret.com?starttls="),
        ("LARGESSE_SMTP_URL", "smtp://mail.secret.com?starttls=required&starttls=never"),
        ("LARGESSE_SMTP_URL", "smtp://mail.secret.com?connections=0"),
        ("LARGESSE_SMTP_URL", "smtp://mail.secret.com?connections=21"),
        ("LARGESSE_SMTP_URL", "smtp://mail.secret.com?connections=3.5"),
        ("LARGESSE_SMTP_URL", "smtp://mail.secret.com?connections="),
        ("LARGESSE_SMTP_URL", "smtp://mail.secret.com?connections=3&connections=4"),
        ("LARGESSE_SMTP_URL", "smtp://mail.example.com?starttls=required&tls=secret"),
        ("LARGESSE_SMTP_URL", "smtp://mail.secret.com#starttls=required"),
        ("LARGESSE_SMTP_URL", "smtp://ada:25?secret@mail.example.com"),  # passwords with `?`, `#` and `/`
        ("LARGESSE_SMTP_URL", "smtp://ada:25#secret@mail.example.com"),
        ("LARGESSE_SMTP_URL", "smtp://ada:25/secret@mail.example.com"),
        ("LARGESSE_MAIL_FROM", "secret"),
        ("LARGESSE_MAIL_FROM", "Gifts <gifts@secret.com>\nBcc: x@secret.com"),
        ("LARGESSE_MAIL_FROM", "Gifts\u2028<gifts@secret.com>"),
        ("LARGESSE_MAIL_FROM", "@secret.com"),
        ("LARGESSE_MAIL_FROM", "gifts@ü..secret.com"),
        ("LARGESSE_MAIL_FROM", "gifts@secret.com, hr@secret.com"),
        ("LARGESSE_MAIL_FROM", "Gifts <gifts hr@secret.com>"),
        ("LARGESSE_MAIL_FROM", "Gifts <gifts@secret .com>"),
        ("LARGESSE_MAIL_FROM", "Gifts gifts@secret.com"),
        ("LARGESSE_WEBHOOK_ALLOWED_NETWORKS", "secret"),
        ("LARGESSE_WEBHOOK_ALLOWED_NETWORKS", "10.0.0.1/8"),
        ("LARGESSE_OFFICE_NETWORKS", " , "),  # of two variables that are not set: it would open the back office to all
        ("LARGESSE_WEBHOOK_TIMEOUT", "secret"),
        ("LARGESSE_WEBHOOK_TIMEOUT", "0"),
        ("LARGESSE_WEBHOOK_TIMEOUT", "-1"),
        ("LARGESSE_WEBHOOK_TIMEOUT", "nan"),
        ("LARGESSE_WEBHOOK_TIMEOUT", "inf"),
        ("LARGESSE_WEBHOOK_TIMEOUT", "301"),
        ("LARGESSE_RATE_LIMIT", "-1"),
        ("LARGESSE_RATE_LIMIT", "many"),
        ("LARGESSE_DATA_DIR", "~no-such-user/secret"),
        ("LARGESSE_SUPPLIERS", "/etc/secret.yaml,~no-such-user/secret.yaml"),
        ("LARGESSE_DOCUMENTATION_URL", "docs.secret.com"),
        ("LARGESSE_DOCUMENTATION_URL", "javascript:secret"),
    ],
)
def test_a_malformed_one_stops_the_start_with_a_line_that_names_it(name: str, value: str) -> None:
    with pytest.raises(OperatorError) as refused:
        load_settings({name: value})
    text = str(refused.value)
    assert name in text
    assert "\n" not in text
    assert "secret" not in text


@pytest.mark.parametrize("parameter", ["startls", "Connections", "timeout"])
def test_a_parameter_of_the_mail_server_that_is_unknown_is_named_with_the_known_ones(parameter: str) -> None:
    with pytest.raises(OperatorError, match=f"'{parameter}': only `starttls=` and `connections=` may"):
        load_settings({"LARGESSE_SMTP_URL": f"smtp://ada:hidden@mail.example.com?{parameter}=required"})


def test_a_current_folder_that_was_removed_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(OperatorError, match=r"^the current folder was removed"):
        load_settings({})
    assert load_settings({"LARGESSE_DATA_DIR": "/var/lib/largesse"}).data_dir == Path("/var/lib/largesse")


@pytest.mark.parametrize("text", [KEY_TEXT, KEY_TEXT.rstrip("="), KEY.hex(), KEY.hex().upper()])
def test_master_keys_are_written_in_base64_or_hexadecimal(text: str) -> None:
    assert load_settings({"LARGESSE_MASTER_KEY": text}).master_keys == (KEY,)


@pytest.mark.parametrize("between", [",", " , ", "\n", "\r\n"])
def test_each_of_several_master_keys_is_read(between: str) -> None:
    assert load_settings({"LARGESSE_MASTER_KEY": f"'{KEY_TEXT}{between}{OTHER.hex()}'"}).master_keys == (KEY, OTHER)


@pytest.mark.parametrize("name", sorted(secret_names()))
def test_each_secret_can_be_in_a_file(name: str, tmp_path: Path) -> None:
    texts = {"LARGESSE_MASTER_KEY": f"{KEY_TEXT}\n{OTHER.hex()}", "LARGESSE_SMTP_URL": "smtp://ada:x@mail.example.com"}
    text = texts.get(name, "postgresql://ada:x@host/database")
    path = tmp_path / "secret"
    path.write_text(f"{text}\n")
    more = {"LARGESSE_DATABASE_URL": text} if name == "LARGESSE_OWNER_DATABASE_URL" else {}
    assert load_settings({**more, f"{name}_FILE": str(path)}) == load_settings({**more, name: text})
    assert load_settings({**more, f"{name}_FILE": " ", name: text}) == load_settings({**more, name: text})


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        (None, {}, "No such file or directory"),
        (b"", {}, "must have 1 to 16,384 characters in the file"),
        (b" \n", {}, "must have 1 to 16,384 characters in the file"),
        (b"secret" * 3_000, {}, "must have 1 to 16,384 characters in the file"),
        (b"secret\xff", {}, "not text in UTF-8"),
        (b"secret", {}, "must hold keys of 32 bytes"),
        (KEY_TEXT.encode(), {"LARGESSE_MASTER_KEY": KEY_TEXT}, "must not be set together with"),
    ],
)
def test_a_file_without_a_proper_secret_stops_the_start(
    content: bytes | None, more: dict[str, str], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingError, match=said) as refused:
        load_settings({**more, "LARGESSE_MASTER_KEY_FILE": str(path)})
    assert refused.value.name == "LARGESSE_MASTER_KEY"
    assert "secret" not in str(refused.value)


def test_master_keys_may_be_url_safe() -> None:
    key = b"\xfb\xef\xbe" * 10 + b"\xff\xff"
    text = base64.urlsafe_b64encode(key).decode()
    assert "-" in text
    assert load_settings({"LARGESSE_MASTER_KEY": text}).master_keys == (key,)


def test_secrets_are_not_in_the_repr_and_nothing_can_be_changed() -> None:
    settings = load_settings(
        {
            "LARGESSE_DATABASE_URL": "postgresql://user:hidden@host/database",
            "LARGESSE_MASTER_KEY": KEY_TEXT,
            "LARGESSE_SMTP_URL": "smtp://user:hidden@mail.example.com",
        }
    )
    assert "hidden" not in repr(settings)
    assert "master" not in repr(settings)
    assert "environment='production'" in repr(settings)
    with pytest.raises(AttributeError):
        settings.environment = "staging"  # type: ignore[misc]


def test_transfer_details_are_lines() -> None:
    def details(text: str) -> tuple[str, ...]:
        return load_settings({"LARGESSE_TRANSFER_DETAILS": text}).transfer_details

    assert load_settings({}).transfer_details == ()
    assert details("Example Ltd | IBAN GB82\u00a0WEST\t1234\nBIC WESTGB2L |") == (
        "Example Ltd",
        "IBAN GB82 WEST 1234",
        "BIC WESTGB2L",
    )
    assert len(details("|".join(["x" * 100] * 10))) == 10
    for text in ("|".join(["x"] * 11), "x" * 101, "a\x07b"):
        with pytest.raises(OperatorError, match=r"^LARGESSE_TRANSFER_DETAILS must be at most 10 lines"):
            details(text)


def test_how_long_recipients_are_kept() -> None:
    def kept(text: str) -> int:
        return load_settings({"LARGESSE_RETENTION_DAYS": text}).retention_days

    assert load_settings({}).retention_days == 0
    assert [kept(text) for text in ("0", " ", "35", "36500")] == [0, 0, 35, 36_500]
    for text in ("34", "36501", "-40", "40.5", "1e3", "forty", "٤٠"):
        with pytest.raises(
            OperatorError, match="LARGESSE_RETENTION_DAYS must be a whole number of days between 35 and 36,500, or 0"
        ):
            kept(text)


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("LARGESSE_RATE_LIMIT", "1,000,000"),
        ("LARGESSE_REQUEST_LOG", "10,000"),
        ("LARGESSE_MAX_CONNECTIONS", "1,000,000"),
        ("LARGESSE_DEFAULT_EXPIRY_DAYS", "36,500"),
    ],
)
def test_a_number_of_things_is_whole_and_its_limit_is_named(name: str, limit: str) -> None:
    for text in ("0.5", "1e3", "1_000", "-1", "many", "٤٠", "9999999999"):
        with pytest.raises(OperatorError, match=f"^{name} must be a whole number between 0 and {limit}$"):
            load_settings({name: text})
    assert load_settings({name: limit.replace(",", "")})


def test_a_timeout_that_is_no_number_is_told_its_limits() -> None:
    with pytest.raises(OperatorError, match=r"^LARGESSE_WEBHOOK_TIMEOUT must be a number between 0\.1 and 300$"):
        load_settings({"LARGESSE_WEBHOOK_TIMEOUT": "15s"})


@pytest.mark.parametrize(
    "sender", ["gifts@mail", "gifts@[127.0.0.1]", '"Acme, Inc" <gifts@acme.example>', "Ä <ä@xn--b-eha.example>"]
)
def test_a_sender_may_have_any_proper_address(sender: str) -> None:
    assert load_settings({"LARGESSE_MAIL_FROM": sender}).mail_from == sender
