"""Forms that name the groups of contacts, and so do not count their members."""

import pytest
from tests.web.api.conftest import RICH_WORLD
from tests.web.console.conftest import SignIn

from largesse.contacts import groups

WORLD = RICH_WORLD


def test_forms_that_only_name_groups_do_not_count_their_members(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = sign_in("ada@acme.example")
    made = ada.submit("/app/contacts/new", "/app/contacts", email="bo@example.com", groups="sales, Berlin")
    monkeypatch.setattr(groups, "_LIST", "SELECT members_of_millions")
    assert ada.get("/app/contacts/groups").status_code == 500
    for form in (made.headers["location"], "/app/contacts/new", "/app/automations/new"):
        page = ada.get(form).text
        assert page.index("Berlin") < page.index("sales"), form
