"""Bodies of programs: how many bytes of them are held at once."""

from __future__ import annotations

from contextlib import ExitStack

from tests.web.api.conftest import Service
from tests.web.half_sent import await_held, half_sent, head_of_answer

from largesse.web.kit.body import BYTES_EACH

LARGE = 4_000_000


def test_a_customer_has_so_many_bytes_on_their_way_and_no_more(service: Service) -> None:
    headers = {"Authorization": f"Bearer {service.keys['hr']}", "Content_Type": "application/json"}
    body = b'{"message": "' + b"x" * LARGE
    with ExitStack() as stack:
        fitting = BYTES_EACH // LARGE
        for _ in range(fitting):
            stack.enter_context(half_sent(service, "/send/gift", body, whole=LARGE + 90_000, **headers))
        await_held(service, (fitting - 1) * LARGE)
        one_more = stack.enter_context(half_sent(service, "/send/gift", body, whole=LARGE + 90_000, **headers))
        refused = head_of_answer(one_more)
        assert refused.startswith("http/1.1 429")
        assert "retry-after: 5" in refused
        # Orders of the usual size are read.
        assert service.send("gift", "coffee", value=10).status_code == 200
    await_held(service, 0, 0)
