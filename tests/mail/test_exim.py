"""Mail through Debian's exim as an operator would have it, from an order over HTTP into a mailbox on the disk.

Runs where exim4 is installed (`apt install exim4-daemon-light`); it is started with a configuration and folders of its own.
"""

import asyncio
import email
import email.policy
import mailbox
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.waiting import until
from tests.web.api.conftest import PUBLIC_URL, RICH_WORLD, Service, ServiceFactory, start_service

from largesse.main import open_worker

__all__ = ["start_service"]

PROGRAM = shutil.which("exim4", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
PATIENCE_S = 60.0
HOSTILE = "<img src=x onerror=alert(1)>\nFrom here on & on: grüße 谢谢"

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="no exim4 on this machine: `apt install exim4-daemon-light` to run its tests"
)

CONFIGURATION = """
primary_hostname = mail.example.com
domainlist local_domains = example.com : xn--bcher-kva.example
exim_user = {user}
exim_group = {group}
spool_directory = {folder}/spool
log_file_path = {folder}/log/%s
pid_file_path = {folder}/pid
keep_environment =
daemon_smtp_ports = {port}
local_interfaces = 127.0.0.1
smtputf8_advertise_hosts = *
tls_advertise_hosts =
deliver_drop_privilege = true
host_lookup =
acl_smtp_rcpt = recipients
acl_smtp_data = accept

begin acl
recipients:
  deny local_parts = nobody
       message = no such user
  accept domains = +local_domains
  deny message = relay not permitted

begin routers
box:
  driver = accept
  domains = +local_domains
  transport = box

begin transports
box:
  driver = appendfile
  file = {folder}/box/all
  create_directory = false
  envelope_to_add
  return_path_add
  user = {user}
  group = {group}
"""


@dataclass
class Exim:
    """A running exim, and the one mailbox it delivers to."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return "".join(path.read_text() for path in sorted((self.folder / "log").glob("*")))

    async def until_delivered(self, count: int) -> None:
        """Waits until exim has done with so many messages: it delivers in its own time."""
        await until(lambda: self.log.count("Completed") >= count, PATIENCE_S)

    def messages(self) -> dict[str, EmailMessage]:
        """What lies in the mailbox, by the recipient of the envelope."""
        box = mailbox.mbox(self.folder / "box" / "all", create=False)
        # As text: the parser of bytes takes UTF-8 in headers (RFC 6532) for damage.
        parse = partial(email.message_from_string, _class=EmailMessage, policy=email.policy.default)
        messages = [parse(box.get_bytes(key).decode()) for key in box.keys()]  # noqa: SIM118 - no dictionary
        box.close()
        return {str(message["Envelope-to"]): message for message in messages}


@pytest.fixture(scope="module")
def exim() -> Iterator[Exim]:
    # Exim delivers nothing as root, and pytest's folders are closed to others.
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        configuration = folder / "exim.conf"
        configuration.write_text(CONFIGURATION.format(folder=folder, port=port, user=user.pw_uid, group=user.pw_gid))
        for path in (folder, *(folder / part for part in ("spool", "log", "box"))):
            path.mkdir(exist_ok=True)
            os.chown(path, user.pw_uid, user.pw_gid)
        # In the foreground and out of any process group but its own: what it forks ends with it.
        as_user = {"user": user.pw_uid, "group": user.pw_gid} if os.geteuid() == 0 else {}
        process = subprocess.Popen(
            [str(PROGRAM), "-C", str(configuration), "-bdf"],
            stderr=subprocess.DEVNULL,
            **as_user,  # type: ignore[arg-type]
        )
        try:
            wait_until_listening(port, process)
            yield Exim(folder, port)
        finally:
            process.terminate()
            process.wait(timeout=30)


def wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "exim has ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            # Until it listens there is nothing to wait on but time.
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
        else:
            return
    pytest.fail("exim does not listen")


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory, exim: Exim) -> Service:
    return start_service(RICH_WORLD, smtp_url=exim.url, mail_from="Grüße von Largesse <gifts@mail.example.com>")


def check_letter(message: EmailMessage, address: str, name: str, codes: int) -> list[str]:
    """Holds a letter that arrived to what was ordered; its links."""
    assert not message.defects
    [to] = message["To"].addresses
    assert (to.display_name, to.addr_spec) == (name, address)
    assert message["From"].addresses[0].display_name == "Åsa <i>& Co</i> via Grüße von Largesse"
    assert message["Subject"] == f"Åsa <i>& Co</i> sent you {'a gift' if codes == 1 else 'gifts'}"
    assert message["Return-path"] == "<gifts@mail.example.com>"
    text, html = (message.get_body((kind,)).get_content() for kind in ("plain", "html"))
    assert HOSTILE.replace("\n", "\n> ") in text.replace("\r\n", "\n")
    assert name in text
    for markup in ("<img", "<b>", "<i>"):
        assert markup not in html
    assert HOSTILE in unescape(html.replace("<br>", "\n"))
    links = re.findall(r"https://\S+", text)
    assert len(links) == codes
    for link in links:
        assert link in html
        assert link.startswith(f"{PUBLIC_URL}/claim/")
    return links


async def test_mail_arrives_in_a_mailbox_with_names_links_and_no_markup_of_the_callers(
    service: Service, exim: Exim
) -> None:
    recipients = [
        {"email": "sam@example.com", "name": 'Sam "The <b>Boss</b>" O\'Neil', "quantity": 2},
        {"email": "zoë@bücher.example", "name": "Zoë 谢"},
        {"email": "nobody@example.com", "name": "Nobody"},
    ]

    def place() -> httpx.Response:
        return service.send(
            "gift", "coffee", value=10, recipients=recipients, fromName="Åsa <i>& Co</i>", message=HOSTILE
        )

    placed = await asyncio.to_thread(place)
    assert placed.status_code == 200, placed.text
    address = f"/orders/{placed.json()['reference']}/deliveries"
    client = service.client("hr")

    def deliveries() -> list[dict[str, str]]:
        listed: list[dict[str, str]] = client.get(address).json()
        return listed

    async with open_worker(service.settings), asyncio.timeout(PATIENCE_S):
        while {one["state"] for one in await asyncio.to_thread(deliveries)} & {"pending", "scheduled"}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await exim.until_delivered(2)

    told = {one["email"]: one for one in await asyncio.to_thread(deliveries)}
    assert {address: one["state"] for address, one in told.items()} == {
        "sam@example.com": "sent",
        "zoë@bücher.example": "sent",
        "nobody@example.com": "bounced",
    }
    assert told["nobody@example.com"]["reason"] == "550 no such user"

    messages = exim.messages()
    assert set(messages) == {"sam@example.com", "zoë@xn--bcher-kva.example"}
    for address, name, codes in (
        ("sam@example.com", 'Sam "The <b>Boss</b>" O\'Neil', 2),
        ("zoë@xn--bcher-kva.example", "Zoë 谢", 1),
    ):
        for link in check_letter(messages[address], address, name, codes):
            page = await asyncio.to_thread(service.client().get, urlsplit(link).path)
            assert page.status_code == 200


@pytest.mark.slow
async def test_a_relay_that_does_not_know_us_bounces_nobody(service: Service, exim: Exim) -> None:
    """Exim gives no enhanced status codes: `550 relay not permitted`, beside others whose mail it takes."""
    recipients = [{"email": f"guest{number}@elsewhere.example"} for number in range(5)]
    recipients.insert(2, {"email": "kim@example.com"})

    def place() -> httpx.Response:
        return service.send("gift", "coffee", value=10, recipients=recipients)

    placed = await asyncio.to_thread(place)
    assert placed.status_code == 200, placed.text
    client = service.client("hr")

    def deliveries() -> list[dict[str, object]]:
        listed: list[dict[str, object]] = client.get(f"/orders/{placed.json()['reference']}/deliveries").json()
        return listed

    async with open_worker(service.settings), asyncio.timeout(PATIENCE_S):
        while not all(one["attempts"] for one in await asyncio.to_thread(deliveries)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    told = await asyncio.to_thread(deliveries)
    refused = ("pending", "server", "550 relay not permitted")
    assert [(one["state"], one["fault"], one["reason"]) for one in told] == [
        *[refused] * 2,
        ("sent", None, None),
        *[refused] * 3,
    ]
