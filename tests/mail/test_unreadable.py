"""A message that nothing can be made of stops no other, and leaves once it can be read."""

import pytest
from tests.mail.conftest import Office

from largesse.db.scope import OPERATOR
from largesse.mail import letter

SAM, KIM = "sam@example.com", "kim@example.com"


async def test_a_message_that_cannot_be_decrypted_stops_no_other(office: Office) -> None:
    """It would come first in each lease, and nobody else's mail would leave."""
    odd, _ = await office.order([(SAM, "Sam", 1)])
    await office.order([(KIM, None, 1)])
    of_odd = "WHERE order_id = (SELECT id FROM orders WHERE reference = $1)"
    sealed = await office.database.fetchval(OPERATOR, f"SELECT sealed FROM lines {of_odd}", odd)
    await office.database.execute(OPERATOR, f"UPDATE lines SET sealed = sealed || 'x' {of_odd}", odd)
    await office.send()
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[KIM]]
    told = "SELECT state, reason, attempts FROM messages " + of_odd
    [row] = await office.database.fetch(OPERATOR, told, odd)
    assert tuple(row) == ("pending", "The mail could not be written.", 1)
    await office.database.execute(OPERATOR, f"UPDATE lines SET sealed = $2 {of_odd}", odd, sealed)
    await office.advance(3590)
    await office.send()
    assert len(office.server.got) == 1
    await office.advance(10)
    await office.send()
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[KIM], [SAM]]


async def test_a_message_that_cannot_be_written_stops_no_other(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    write = letter.write

    def fail(one: letter.Letter, mail_from: str, *, at: float) -> bytes:
        if one.email == SAM:
            raise LookupError
        return write(one, mail_from, at=at)

    monkeypatch.setattr(letter, "write", fail)
    await office.send_order([(SAM, "Sam", 1), (KIM, None, 1)])
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[KIM]]
    monkeypatch.setattr(letter, "write", write)
    await office.advance(60)
    await office.send()
    assert [envelope.rcpt_tos for envelope in office.server.got] == [[KIM], [SAM]]
