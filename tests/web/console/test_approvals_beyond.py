"""The pages of a send beyond a budget name a limit for each gift that it exceeds."""

from tests.web.api.conftest import Service
from tests.web.console.approving import WORLD, as_before, asked, set_rule, user_id
from tests.web.console.conftest import SignIn

__all__ = ["WORLD", "as_before"]


def test_a_limit_for_each_gift_is_named(service: Service, sign_in: SignIn) -> None:
    ada, cem = sign_in("ada@acme.example"), sign_in("cem@acme.example")
    ada.get("/app/budgets")
    of = f"person-{user_id(service, 'cem')}"
    ada.post("/app/budgets", name="Own: small", of=of, currency="GBP", period="month", limit="", per_gift="9")
    set_rule(ada, name="Beyond", above="", beyond_budget="yes")
    reference = asked(cem, service)
    for page in (cem.text, ada.read(f"/app/approvals/{reference}")):
        assert "A gift costs £10.00. The budget Own: small allows at most £9.00 for each." in page
