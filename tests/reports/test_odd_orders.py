"""An order whose figures cannot be written keeps no other out of lists and reports."""

from collections.abc import Callable
from typing import Any

import structlog

_TOLD = "SELECT count(*) FROM report_orders r JOIN orders o ON o.id = r.order_id WHERE o.reference = $1"
_OF_ODD = "WHERE group_id = (SELECT id FROM report_groups WHERE source = 'odd')"


def test_an_order_that_cannot_be_summed_keeps_no_other_out(service: Any, follow: Callable[[], None]) -> None:
    def place(source: str) -> str:
        sent = service.send("gift", "coffee", value=5, codeQuantity=1, source=source)
        return str(sent.json()["reference"])

    place("odd")
    follow()
    # As far as many of the largest orders get, each placed and cancelled again.
    service.sql(f"UPDATE report_sums SET spent_minor = 9223372036854775807 {_OF_ODD}")
    others, odd = [place("other")], place("odd")
    others.append(place("other"))
    with structlog.testing.capture_logs() as logs:
        follow()
    assert [service.sql(_TOLD, one)[0][0] for one in (*others, odd)] == [1, 1, 0]
    left_out = [one["order"] for one in logs if one["event"] == "report.order_left_out"]
    assert left_out == [service.sql("SELECT id FROM orders WHERE reference = $1", odd)[0][0]]
    # Once there is room, the next change of the order is told.
    service.sql(f"UPDATE report_sums SET spent_minor = 500 {_OF_ODD}")
    assert service.client("hr").post(f"/orders/{odd}/cancel").status_code == 200
    follow()
    assert service.sql(_TOLD, odd)[0][0] == 1
    assert service.findings() == []
