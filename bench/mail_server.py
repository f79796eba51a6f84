"""`python -m bench.mail_server PORT`: a mail server (aiosmtpd) that takes every message and keeps none."""

import asyncio
import sys

import uvloop
from aiosmtpd.smtp import SMTP, Envelope, Session


class Bin:
    """Where the messages go."""

    async def handle_DATA(self, _server: SMTP, _session: Session, _envelope: Envelope) -> str:  # noqa: N802 - its name
        return "250 OK"


async def main() -> None:
    """Serves until it is killed."""
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(Bin(), hostname="localhost"), "127.0.0.1", int(sys.argv[1])
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
