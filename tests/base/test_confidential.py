"""What a record with secrets shows of itself."""

import pytest

from largesse.lines.codes import DrawnCode
from largesse.mail.letter import LetterCode
from largesse.suppliers.model import Bought
from largesse.webhooks.store import RotatedSecret


@pytest.mark.parametrize("shown", [repr, str, "{!r}".format, "{}".format])
@pytest.mark.parametrize("kind", [DrawnCode, LetterCode, Bought, RotatedSecret])
def test_secrets_are_in_no_repr(kind: type, shown) -> None:
    record = kind(*("hidden" for _ in kind.__struct_fields__))
    assert "hidden" not in shown(record)
    assert kind.__name__ in shown(record)
    assert record.__rich_repr__() == []
