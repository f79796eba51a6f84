"""Mail: waiting orders of two recipients, one worker, a mail server that accepts everything.

*How.* Orders are placed while no worker runs, then `largesse worker` starts. The figure is its mails a second from the start of
the first order to the last outcome written: leased, codes decrypted, HTML and text written, handed over, logged and recorded. The mail
server (aiosmtpd) is a separate process on the same machine. The reference sends one ready message again and again to the same
server over one connection of aiosmtplib.

*What it means.* The cost of writing a letter and surviving a crash, compared with the mail protocol itself.
"""

import time
from functools import partial

import aiosmtplib
import uvloop

from bench.installation import Installation
from bench.outgoing import place_orders, run_worker, served
from bench.results import Row, Sample
from bench.suite import Suite, at_least
from bench.world import one_account
from largesse.base.i18n.languages import DEFAULT
from largesse.mail.letter import GIFT, VOUCHER, Letter, LetterCode, write

_LETTER = Letter(
    kind=GIFT,
    reference="00000000000000000000",
    edition=0,
    environment="production",
    language=DEFAULT,
    email="ada.lovelace@example.com",
    name="Ada Lovelace",
    sender="Acme People Team",
    message="Thank you for a wonderful year!",
    wrapping_key="default",
    gift="Coffee House e-gift",
    comes_as=VOUCHER,
    value_minor=1000,
    currency="GBP",
    expiry_days=None,
    recipients=2,
    codes=[LetterCode("0000-0000-0000-0000-0", "000000", f"http://127.0.0.1:8000/claim/{40 * 'x'}")],
)


def run(suite: Suite) -> list[Row]:
    with suite.installation("mails", one_account()) as made, served("bench.mail_server") as port:
        pairs = suite.in_turn(partial(_mail, made, port, suite.seconds), partial(_hand_over, port, suite.seconds))
    return [
        Row(
            "mails",
            "mails/s",
            "one worker",
            "aiosmtplib handing over one ready message, one connection",
            at_least(0.95),
            pairs,
        )
    ]


def _mail(made: Installation, port: int, seconds: float) -> Sample:
    place_orders(made, seconds / 10)
    settings = {"LARGESSE_SMTP_URL": f"smtp://127.0.0.1:{port}"}
    return run_worker(made, settings, "messages", "SELECT min(created_at) FROM messages WHERE created_at > $1")


def _hand_over(port: int, seconds: float) -> Sample:
    return Sample(uvloop.run(_hand_over_for(port, seconds)))


async def _hand_over_for(port: int, seconds: float) -> float:
    """Mails a second."""
    message = write(_LETTER, "Largesse <gifts@example.com>", at=time.time())
    handed_over = 0
    async with aiosmtplib.SMTP(hostname="127.0.0.1", port=port) as connection:
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            await connection.sendmail("gifts@example.com", [_LETTER.email], message)
            handed_over += 1
        took_s = time.perf_counter() - began
    return handed_over / took_s
