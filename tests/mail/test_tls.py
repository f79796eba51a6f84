"""The address of the mail server, and STARTTLS and login with a real one: what is given only to the right one, and what a refusal does."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.mail.conftest import Office, PostOffice

from largesse.base.settings import load_settings
from largesse.db.scope import OPERATOR
from largesse.mail.server import MailServer

# aiosmtpd means STARTTLS, which a server that speaks TLS from the start does not need.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")

SAM, KIM = "sam@example.com", "kim@example.com"
PASSWORD = "p@ss w/ord"


@dataclass
class Guarded(PostOffice):
    """A mail server that takes mail only over TLS, from who knows the password."""

    tls: ssl.SSLContext | None = None
    implicit: bool = False
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)

    def protocol(self) -> SMTP:
        starttls = self.tls is not None and not self.implicit
        return SMTP(
            self,
            hostname="mail.example.com",
            enable_SMTPUTF8=self.utf8,
            tls_context=self.tls if starttls else None,
            require_starttls=starttls,
            auth_required=True,
            auth_require_tls=starttls,
            authenticator=self.authenticate,
        )

    @property
    def listens_with(self) -> ssl.SSLContext | None:
        return self.tls if self.implicit else None

    def authenticate(
        self, _server: SMTP, session: Session, _envelope: Envelope, _mechanism: str, given: LoginPassword
    ) -> AuthResult:
        self.logins.append((given.login, given.password))
        self.encrypted.append(session.ssl is not None or self.implicit)
        # `handled` means that the answer was given already.
        return AuthResult(success=given.password == PASSWORD.encode(), handled=False)


Start = Callable[..., Awaitable[Guarded]]


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The TLS of a server whose certificate the machine trusts, by the variable OpenSSL has for that."""
    context, certificate = make_tls(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return context


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    servers: list[Guarded] = []

    async def begin(tls: ssl.SSLContext | None, *, implicit: bool = False) -> Guarded:
        server = Guarded(tls=tls, implicit=implicit)
        await server.start()
        servers.append(server)
        return server

    yield begin
    for server in servers:
        await server.close()


def make_tls(folder: Path, host: str, *, expired: bool = False) -> tuple[ssl.SSLContext, Path]:
    """A server's TLS with a certificate for an address, signed by itself; and the certificate's file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail.example.com")])
    begins = datetime.now(UTC) - timedelta(days=2)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=1 if expired else 10))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file = folder / "key.pem"
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key_file)
    return context, file


def url_of(server: PostOffice, *, scheme: str = "smtp", password: str = PASSWORD) -> str:
    return f"{scheme}://gifts:{quote(password, safe='')}@127.0.0.1:{server.port}"


async def attempts(office: Office) -> int:
    count: int = await office.database.fetchval(OPERATOR, "SELECT max(attempts) FROM messages")
    return count


@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "smtps"])
async def test_mail_leaves_encrypted_after_a_login(
    office: Office, start: Start, trusted: ssl.SSLContext, implicit: bool
) -> None:
    server = await start(trusted, implicit=implicit)
    office.use(url_of(server, scheme="smtps" if implicit else "smtp"))
    await office.send_order([(SAM, "Sam", 1), (KIM, None, 1)])
    assert await office.states() == ["sent", "sent"]
    assert [envelope.rcpt_tos for envelope in server.got] == [[SAM], [KIM]]
    assert server.logins == [(b"gifts", PASSWORD.encode())], "one connection and one login for both"
    assert server.encrypted == [True]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("unknown", "self-signed certificate"),
        ("other host", "IP address mismatch, certificate is not valid for '127.0.0.1'"),
        ("expired", "certificate has expired"),
    ],
)
@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "smtps"])
async def test_a_server_with_a_bad_certificate_hears_no_password(
    office: Office, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, implicit: bool, wrong: str, said: str
) -> None:
    tls, certificate = make_tls(
        tmp_path, "127.0.0.2" if wrong == "other host" else "127.0.0.1", expired=wrong == "expired"
    )
    if wrong != "unknown":
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    server = await start(tls, implicit=implicit)
    office.use(url_of(server, scheme="smtps" if implicit else "smtp"))
    reference, _ = await office.send_order([(SAM, "Sam", 1)])
    assert server.logins == []
    assert server.got == []
    [told] = await office.deliveries(reference)
    assert told.state == "pending"
    assert told.reason == f"the mail server takes no mail: its certificate is not trusted ({said})"
    assert await attempts(office) == 0, "it is no fault of the recipient's"


async def test_a_refused_login_costs_no_message_and_is_tried_again(
    office: Office, start: Start, trusted: ssl.SSLContext
) -> None:
    server = await start(trusted)
    office.use(url_of(server, password="wrong"))
    await office.send_order([(SAM, "Sam", 1), (KIM, None, 1)])
    assert {password for _, password in server.logins} == {b"wrong"}
    assert server.got == []
    assert await office.states() == ["pending", "pending"]
    assert await attempts(office) == 0
    office.use(url_of(server))  # the operator has put the password right
    await office.send()
    assert await office.states() == ["sent", "sent"]
    assert len(server.got) == 2


@dataclass
class Offering(PostOffice):
    """A mail server that asks for no login and offers STARTTLS, unless somebody between leaves the offer out."""

    tls: ssl.SSLContext | None = None
    encrypted: list[bool] = field(default_factory=list)

    def protocol(self) -> SMTP:
        return SMTP(self, hostname="mail.example.com", tls_context=self.tls)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        self.encrypted.append(session.ssl is not None)
        return await super().handle_DATA(server, session, envelope)


@pytest.mark.parametrize(
    ("asked", "offered", "state", "encrypted"),
    [
        ("", True, "sent", [True]),
        ("", False, "sent", [False]),
        ("?starttls=optional", False, "sent", [False]),
        ("?starttls=required", True, "sent", [True]),
        ("?starttls=required", False, "pending", []),
        ("?starttls=never", True, "sent", [False]),
    ],
)
async def test_starttls_can_be_required_without_a_password(
    office: Office, trusted: ssl.SSLContext, asked: str, offered: bool, state: str, encrypted: list[bool]
) -> None:
    server = Offering(tls=trusted if offered else None)
    await server.start()
    office.use(server.url + asked)
    await office.send_order([(SAM, "Sam", 1)])
    await server.close()
    assert await office.states() == [state]
    assert server.encrypted == encrypted
    assert await attempts(office) == len(encrypted), "a server that offers none costs no message an attempt"


@pytest.mark.parametrize("asked", ["", "?starttls=required"])
async def test_a_bad_certificate_gets_no_mail_with_or_without_a_password(
    office: Office, tmp_path: Path, asked: str
) -> None:
    unknown, _ = make_tls(tmp_path, "127.0.0.1")
    server = Offering(tls=unknown)
    await server.start()
    office.use(server.url + asked)
    await office.send_order([(SAM, "Sam", 1)])
    await server.close()
    assert await office.states() == ["pending"]
    assert server.got == []


async def test_a_password_is_not_given_to_a_server_without_tls(office: Office, start: Start) -> None:
    server = await start(None)
    office.use(url_of(server))
    await office.send_order([(SAM, "Sam", 1)])
    assert server.logins == []
    assert await office.states() == ["pending"]
    office.use(f"{url_of(server)}?starttls=false")
    await office.send()
    assert server.logins == [(b"gifts", PASSWORD.encode())]
    assert await office.states() == ["sent"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.example.com", ("mail.example.com", 25, None, None, False, None)),
        ("smtp://ada:p%40ss@mail.example.com", ("mail.example.com", 587, "ada", "p@ss", False, True)),
        ("smtp://ada:x@h:2525?starttls=false", ("h", 2525, "ada", "x", False, False)),
        ("smtp://h?starttls=true", ("h", 25, None, None, False, True)),
        ("smtp://h?starttls=Required", ("h", 25, None, None, False, True)),
        ("smtp://ada:x@h?starttls=optional", ("h", 587, "ada", "x", False, None)),
        ("smtp://h?starttls=never", ("h", 25, None, None, False, False)),
        ("smtps://ada:x@h", ("h", 465, "ada", "x", True, False)),
    ],
)
def test_a_password_travels_in_clear_only_when_told_to(url: str, expected: tuple[object, ...]) -> None:
    server = MailServer.from_url(url)
    assert (server.host, server.port, server.username, server.password, server.tls, server.starttls) == expected
    assert server.password is None or server.password not in repr(server)


@pytest.mark.parametrize(
    ("url", "connections"),
    [("smtp://h", 8), ("smtp://h?connections=1", 1), ("smtps://h?starttls=required&connections=20", 20)],
)
def test_how_many_connections_a_worker_opens_can_be_set(url: str, connections: int) -> None:
    assert load_settings({"LARGESSE_SMTP_URL": url}).smtp_url == url
    assert MailServer.from_url(url).connections == connections
