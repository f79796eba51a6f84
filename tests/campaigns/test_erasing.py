"""Who is erased is in no list of a campaign any more, nor among those who asked or got a gift; the ledger stays whole."""

import json

from tests.campaigns.conftest import reserve, taken
from tests.campaigns.test_giving import ask, prove
from tests.privacy.conftest import Run, dump, run
from tests.web.api.conftest import Service

from largesse.campaigns.visiting import Outcome

__all__ = ["run"]

ZOE = "Zoe.Quillfeather@acme.example"


def test_a_visitor_is_exported_and_erased(service: Service, run: Run) -> None:
    before = service.balance("gbp")
    token = reserve(service, gifts=3)
    other = reserve(service, gifts=2, domains=(), mailboxes=(ZOE.lower(), "yan@list.example", "xan@list.example"))
    assert prove(service, token, ZOE).outcome is Outcome.GIVEN
    assert prove(service, token, "yan@acme.example").outcome is Outcome.GIVEN
    assert prove(service, other, "yan@list.example").outcome is Outcome.GIVEN
    ask(service, token, ZOE)
    exported = json.loads(run("privacy", "export", ZOE).stdout)
    assert len(exported["campaigns"]) == 2
    requests = [
        (one["customer"], one["environment"], one["email"], one["language"]) for one in exported["code_requests"]
    ]
    assert requests == [("acme", "production", ZOE, "en")] * 2
    assert "yan@" not in json.dumps(exported)

    receipt = json.loads(run("privacy", "erase", ZOE, "--json").stdout)
    assert receipt["campaigns"] >= 1
    assert [line for line in dump(service).lower().splitlines() if "quillfeather" in line] == []
    assert taken(service, token) == [("erased-1@erased.invalid", 1), ("yan@acme.example", 2)]
    assert taken(service, other) == [("yan@list.example", 1)]
    listed = service.sql("SELECT mailbox FROM campaign_people WHERE number IS NULL")
    assert [row["mailbox"] for row in listed] == ["xan@list.example"]
    assert service.balance("gbp") == before - 50
    assert run("privacy", "erase", ZOE).exit_code == 1
    assert service.findings() == []


def test_a_gift_taken_by_another_spelling_of_the_mailbox_is_the_persons_too(service: Service, run: Run) -> None:
    token, zoe = reserve(service, gifts=2), "zoe.plumage@acme.example"
    assert prove(service, token, "Zoe.Plumage+gift@acme.example").outcome is Outcome.GIVEN
    assert prove(service, token, "yan@acme.example").outcome is Outcome.GIVEN
    [order] = json.loads(run("privacy", "export", zoe).stdout)["orders"]
    assert [line["email"] for line in order["lines"]] == ["Zoe.Plumage+gift@acme.example"]
    assert json.loads(run("privacy", "erase", zoe, "--json").stdout)["lines"] == 1
    assert [line for line in dump(service).lower().splitlines() if "plumage" in line] == []
    assert taken(service, token) == [("erased-1@erased.invalid", 1), ("yan@acme.example", 2)]
    assert run("privacy", "erase", zoe).exit_code == 1
