"""What people do with people is in the audit log: who, from where, with which request, and what changed."""

from __future__ import annotations

import json
import re

from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser


def test_what_is_done_with_people_is_on_record(service: Service, ada: Browser) -> None:
    shown = ada.submit("/app/people", email="joan@acme.example", name="Joan", role="viewer")
    [link] = set(re.findall(r"https://gifts\.example(/app/link/[\w-]+)", shown.text))
    joan = Browser(service)
    joan.submit(link, password="four plain words here")
    joan_id = service.sql("SELECT id FROM users WHERE email = 'joan@acme.example'")[0]["id"]
    ada.submit("/app/people", f"/app/people/{joan_id}/role", role="finance")
    removed = ada.submit("/app/people", f"/app/people/{joan_id}/remove")
    rows = service.sql(
        """SELECT act, actor, actor_name, address, request_id, subject, before::text, after::text
        FROM audit_events WHERE customer_id = $1 ORDER BY id""",
        service.ids["customers"]["acme"],
    )
    told = [(row["act"], row["actor_name"], row["subject"], row["address"]) for row in rows]
    a, j = "ada@acme.example", "joan@acme.example"
    assert told == [
        ("person.signed_in", a, a, ada.host),
        ("person.invited", a, j, ada.host),
        ("person.joined", j, j, joan.host),
        ("person.signed_in", j, j, joan.host),
        ("person.role_changed", a, j, ada.host),
        ("person.removed", a, j, ada.host),
    ]
    assert {row["actor"] for row in rows} == {"person"}
    assert rows[-1]["request_id"] == removed.headers["x-request-id"]
    assert (json.loads(rows[4]["before"]), json.loads(rows[4]["after"])) == ({"role": "viewer"}, {"role": "finance"})
    assert link.rpartition("/")[2] not in str(rows)
