"""Receivers that break what they may break, and a certificate for those that speak TLS."""

import asyncio
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@asynccontextmanager
async def broken_receiver(kind: str) -> AsyncIterator[str]:
    """The URL of a receiver that is broken in one way."""
    if kind == "has no such name":
        yield "https://no-such-name.invalid/"
        return
    handlers: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())  # type: ignore[arg-type]
        try:
            await _misbehave(kind, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=_tls(kind))
    port = server.sockets[0].getsockname()[1]
    if kind == "is not there":
        server.close()
    of_tls = {"has a bad certificate", "drips its handshake", "says nothing of its certificate"}
    yield f"{'https' if kind in of_tls else 'http'}://127.0.0.1:{port}/"
    server.close()
    for handler in handlers:
        handler.cancel()
    await asyncio.gather(*handlers)


async def _misbehave(kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if kind in {"hangs", "says nothing of its certificate"}:
        await reader.read()
        await asyncio.Event().wait()
    elif kind == "talks nonsense":
        writer.write(b"220 mail.example.com ESMTP\r\n")
    elif kind == "resets":
        await reader.read(10)
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    elif kind.startswith("drips"):
        drop = b"x"
        if "handshake" in kind:  # the head of a TLS record that is long in coming
            writer.write(b"\x16\x03\x03\x40\x00\x02")
            drop = b"\0"
        else:
            writer.write(b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 999\r\n\r\n" if "body" in kind else b"X: "))
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.05)


def _tls(kind: str) -> ssl.SSLContext | None:
    if kind != "has a bad certificate":
        return None
    return self_signed()


def self_signed() -> ssl.SSLContext:
    """A server's TLS with a certificate nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(pem)
        file.flush()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file.name)
    return context
