"""The page of the audit log."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser

SignIn = Callable[[str], Browser]


def make_account(admin: Browser, name: str) -> None:
    admin.get("/app/service-accounts")
    assert admin.post("/app/service-accounts", name=name).status_code == 303


def test_what_was_done_is_listed_newest_first_and_found(service: Service, sign_in: SignIn) -> None:
    ada = sign_in("ada@acme.example")
    for name in ("First", "Second <b>", "=1+2"):
        make_account(ada, name)
    ada.get("/app/audit")
    shown = ada.text
    assert shown.index("name: Second <b>") < shown.index("name: First")
    assert "Second <b>" not in ada.get("/app/audit").text
    ada.get("/app/audit?act=service_account.created&who=ADA%40")
    assert "name: First" in ada.text
    for nothing in ("act=key.deleted", "who=nobody", "before=1"):
        ada.get(f"/app/audit?{nothing}")
        assert "Nothing of that kind was done." in ada.text
    for odd in ("act=<script>", "before=x", "before=" + "9" * 30, "who=" + "x" * 500):
        assert ada.get(f"/app/audit?{odd}").status_code == 200
        assert "<script>" not in ada.page.text
    rows = list(csv.DictReader(io.StringIO(ada.get("/app/audit.csv").text.lstrip("\ufeff"))))
    names = [row["after"] for row in rows if row["act"] == "service_account.created"]
    assert [name for name in names if "First" in name]
    assert all(row["actor_name"] == "ada@acme.example" for row in rows if row["actor"] == "person")
    # Who takes such a file is in it.
    assert [row["subject"] for row in rows if row["act"] == "file.exported"] == ["audit-log.csv"]


def test_the_file_holds_what_the_page_is_filtered_by(service: Service, sign_in: SignIn) -> None:
    ada = sign_in("ada@acme.example")
    make_account(ada, "Filtered")
    ada.get("/app/audit?act=service_account.created&who=ada")
    [path] = [link for link in ada.links if "audit.csv" in link]
    rows = list(csv.DictReader(io.StringIO(ada.get(path.replace("&amp;", "&")).text.lstrip("\ufeff"))))
    assert {row["act"] for row in rows} == {"service_account.created"}
    assert "Filtered" in rows[0]["after"]
    assert ada.get("/app/audit.csv?who=nobody").text.count("\n") == 1


def test_older_events_are_a_page_away(service: Service, sign_in: SignIn) -> None:
    ada = sign_in("ada@acme.example")
    for number in range(51):
        make_account(ada, f"Numbered {number}.")
    ada.get("/app/audit")
    assert "Numbered 50." in ada.text
    assert "Numbered 0." not in ada.text
    [older] = re.findall(r'href="([^"]+)" rel="next"', ada.page.text)
    ada.get(older)
    assert "Numbered 0." in ada.text
    assert "Newer" in ada.text


def test_nobody_reads_what_another_customer_did(service: Service, sign_in: SignIn) -> None:
    make_account(sign_in("ada@acme.example"), "Secretly")
    gil = sign_in("gil@globex.example")
    for path in ("/app/audit", "/app/audit.csv"):
        assert "Secretly" not in gil.get(path).text
