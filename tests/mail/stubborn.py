"""A real SMTP server on loopback that fails at the stages it is told."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from largesse.mail.smtp import DATA, DOT, MAIL, RCPT

GREETING, EHLO, TEXT = "the greeting", "EHLO", "the middle of the text"
STAGES = (GREETING, EHLO, MAIL, RCPT, DATA, TEXT, DOT)
_FINE = {GREETING: "220 hello", EHLO: "250 mail.example.com", DATA: "354 go ahead", TEXT: ""}


@dataclass
class Stubborn:
    """`fails` says for each stage what happens to whom, or to all (`*`): `hang`, `close`, or an answer. 421 also closes."""

    fails: dict[str, dict[str, str]] = field(default_factory=dict)
    got: list[str] = field(default_factory=list)  # the recipients of whole texts, answered or not
    connections: int = 0
    url: str = ""
    is_stuck: asyncio.Event = field(default_factory=asyncio.Event)  # it hangs
    talks: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = field(default_factory=dict)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.talks[asyncio.current_task()] = writer
        with contextlib.suppress(EOFError, ConnectionError):
            await _Conversation(self, reader, writer).hold()
        writer.close()

    async def end(self) -> None:
        for writer in self.talks.values():
            writer.transport.abort()
        await asyncio.gather(*filter(None, self.talks))


@dataclass
class _Conversation:
    server: Stubborn
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    recipient: str = ""

    async def hold(self) -> None:
        await self._reach(GREETING)
        while line := (await self.reader.readline()).decode(errors="replace").strip():
            match line[:4].upper():
                case "EHLO" | "HELO":
                    await self._reach(EHLO)
                case "MAIL":
                    self.recipient = ""
                    await self._reach(MAIL)
                case "RCPT":
                    self.recipient = line[len("RCPT TO:<") : line.index(">")]
                    await self._reach(RCPT)
                case "DATA":
                    await self._take_text()
                case _:  # RSET, NOOP and QUIT
                    await self._reach("")

    async def _take_text(self) -> None:
        if await self._reach(DATA):
            await self.reader.readline()
            await self._reach(TEXT)
            await self.reader.readuntil(b"\r\n.\r\n")
            self.server.got.append(self.recipient)
            await self._reach(DOT)

    async def _reach(self, stage: str) -> bool:
        """Returns whether the stage goes well."""
        failing = self.server.fails.get(stage, {})
        answer = failing.get(self.recipient) or failing.get("*")
        if answer == "hang":
            self.server.is_stuck.set()
            await self.reader.read()
        if answer in {"hang", "close"}:
            raise ConnectionError
        said = answer or _FINE.get(stage, "250 OK")
        if said:
            self.writer.write(f"{said}\r\n".encode())
            await self.writer.drain()
        if said.startswith("421"):
            raise ConnectionError
        return answer is None


@contextlib.asynccontextmanager
async def running(**fails: dict[str, str]) -> AsyncIterator[Stubborn]:
    stubborn = Stubborn(dict(fails))
    server = await asyncio.start_server(stubborn.talk, "127.0.0.1", 0)
    stubborn.url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield stubborn
    finally:
        server.close()
        await stubborn.end()
