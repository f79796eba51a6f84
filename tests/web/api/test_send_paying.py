"""Orders that are refused for want of money, and references that name one order."""

from typing import Any

import pytest

from largesse.ledger.own_accounts import OwnAccounts

SAM = {"email": "sam@example.com"}

pytestmark = pytest.mark.usefixtures("refusals_alone")


class TestBalance:
    """To the last penny, and not one more."""

    @pytest.mark.usefixtures("places")
    def test_an_order_of_all_there_is_leaves_nothing(self, service, problem) -> None:
        before = service.state()
        refused = service.send("gift", "shop", key="crm", account="sales", value=20.01)
        assert "costs 20.01 GBP, the account holds 20.00 GBP" in problem(refused, 402, "insufficient-balance")
        refused = service.send("gift", "shop", key="crm", account="sales", value=0.01, codeQuantity=2001)
        problem(refused, 402, "insufficient-balance")
        assert service.state() == before
        sent = service.send("gift", "shop", key="crm", account="sales", value=0.01, codeQuantity=2000)
        assert sent.status_code == 200
        assert service.balance("sales") == 0
        problem(service.send("gift", "shop", key="crm", account="sales", value=0.01), 402, "insufficient-balance")

    def test_postage_and_vat_count(self, service, problem) -> None:
        # The team has 50.00; the hamper's value is 38.50, delivered 52.14.
        refused = service.send("gift", "hamper", account="team")
        assert "52.14" in problem(refused, 402, "insufficient-balance")


@pytest.mark.usefixtures("places")
def test_accounts_that_a_crash_took_are_created_anew(service) -> None:
    """Their creation is written to the disk with the first order that uses them. A process may know ids that are gone."""
    assert service.send("gift", "shop", value=0.01).status_code == 200
    cached = service.app.services.orders._own_accounts._cached
    key = (service.ids["customers"]["acme"], "production", "GBP")
    cached.put(key, OwnAccounts(receivable=2_000_000_000, sales=2_000_000_001))
    assert service.send("gift", "shop", value=0.01).status_code == 200
    assert cached.get(key).sales < 2_000_000_000


@pytest.mark.usefixtures("places")
class TestReference:
    """The caller's reference: the order of checks, and that a refusal does not use it up."""

    def test_a_used_reference_is_refused_whatever_else_the_body_holds(self, service, problem) -> None:
        first = service.send("gift", "coffee", value=5, externalReference="used-1").json()["reference"]
        state = service.state()
        client = service.client("hr")
        whatever: list[tuple[str, dict[str, Any]]] = [
            ("gift", service.body("gift", "coffee", value=5)),
            ("gift", service.body("gift", "coffee", value=10, codeQuantity=7)),
            ("gift", service.body("gift", "coffee", value=5.001)),
            ("gift", service.body("gift", "coffee", value="x")),
            ("gift", {}),
            ("gift", {"productId": None, "codeQuantity": 0, "message": "x" * 999}),
            ("gift", service.body("gift", "coffee", value=5, accountId=999_999)),
            ("gift", service.body("gift", "coffee", value=5, account="eur")),
            ("gift", service.body("gift", "shop", value=100_000, codeQuantity=5000)),
            ("gift", service.body("gift", "coffee", recipients=[{"email": "x"}])),
            ("gift", service.body("gift", "coffee", value=5, recipients=[SAM], sendAt="2000-01-01T00:00Z")),
            ("gift", service.body("gift", "globex-club", value=10)),
            ("collection", service.body("collection", "acme-thanks")),
            ("collection", {"collectionId": "x"}),
            ("template", service.body("template", "welcome")),
            ("template", {"templateId": 999_999}),
        ]
        for what, body in whatever:
            for reference in ("used-1", "  used-1\t"):
                answer = client.post(f"/send/{what}", json={**body, "externalReference": reference})
                assert answer.status_code == 409, (body, answer.text)
                assert first in problem(answer, 409, "reference-used")
                assert answer.json()["instance"] == f"/orders/{first}"
        assert client.get(f"/orders/{first}").status_code == 200
        other = service.send("gift", "coffee", key="crm", value=5, externalReference="used-1")
        problem(other, 409, "reference-used")
        assert service.state() == state

    def test_a_body_that_cannot_be_read_comes_before_a_used_reference(self, service, problem) -> None:
        service.send("gift", "coffee", value=5, externalReference="used-2")
        client = service.client("hr")
        for raw in (
            b'{"externalReference":"used-2"',
            b'[{"externalReference":"used-2"}]',
            b'{"externalReference":"used-2","productId":"x"}}',
            b'{"productId":"x","externalReference":"used-2",}',
        ):
            problem(client.post("/send/gift", content=raw), 400)

    def test_an_over_long_reference_comes_before_the_rest(self, service, problem) -> None:
        refused = service.client("hr").post("/send/gift", json={"externalReference": "x" * 129})
        assert "`externalReference`" in problem(refused, 400)

    def test_letter_case_counts_and_blanks_inside_count(self, service) -> None:
        for reference in ("Case", "case", "ca se", "ca  se"):
            assert (
                service.send("gift", "coffee", value=5, externalReference=reference).json()["externalReference"]
                == reference
            )

    def test_customers_and_environments_share_no_references(self, service, staging) -> None:
        for sent in (
            service.send("gift", "coffee", value=5, externalReference="shared"),
            service.send("gift", "coffee", key="globex", account="globex-gbp", value=5, externalReference="shared"),
            service.send("gift", "coffee", key="initech", account=None, value=5, externalReference="shared"),
            staging.send("gift", "coffee", key="hr-test", account="test-gbp", value=5, externalReference="shared"),
        ):
            assert (sent.status_code, sent.json()["externalReference"]) == (200, "shared")

    def test_a_reference_survives_every_refusal(self, service, problem) -> None:
        key = {"externalReference": "survivor"}
        refusals = [
            (400, "invalid-request", service.send("gift", "coffee", value=6, **key)),
            (400, "invalid-request", service.send("gift", "coffee", value="x", **key)),
            (400, "invalid-request", service.send("gift", "coffee", value=5, account="eur", **key)),
            (400, "invalid-request", service.send("gift", "coffee", value=5, account="sales", **key)),
            (400, "invalid-request", service.send("template", "globex-hello", **key)),
            (402, "insufficient-balance", service.send("gift", "shop", account="team", value=9999, **key)),
            (403, "inactive-service-account", service.send("gift", "coffee", key="idle", value=5, **key)),
        ]
        for status, slug, answer in refusals:
            problem(answer, status, slug)
        assert service.send("gift", "coffee", value=5, **key).status_code == 200
        problem(service.send("gift", "coffee", value=5, **key), 409, "reference-used")
