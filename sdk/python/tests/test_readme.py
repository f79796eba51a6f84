"""Runs the samples of the README. The first order takes ten lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
ERRORS = (Path(__file__).parents[3] / "docs" / "guides" / "errors.md").read_text(encoding="utf-8")


def sample(holding: str) -> str:
    (found,) = [
        text for text in re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE) if holding in text
    ]
    return found


@pytest.fixture
def run(largesse_server, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("LARGESSE", largesse_server.base_url)
    monkeypatch.setenv("LARGESSE_API_KEY", largesse_server.api_key)

    def run_sample(holding: str) -> dict[str, Any]:
        names: dict[str, Any] = {}
        exec(compile(sample(holding), "README.md", "exec", dont_inherit=True), names)  # noqa: S102 - text of our own
        return names

    return run_sample


def test_a_first_order(run, capsys: pytest.CaptureFixture[str], balance) -> None:
    assert len([line for line in sample("thanks-1").splitlines() if line]) <= 10
    before = balance()
    run("thanks-1")
    run("thanks-1")
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert first.endswith(" 10.0 GBP")
    assert before - balance() == 10


def test_the_one_that_is_awaited(run, capsys: pytest.CaptureFixture[str]) -> None:
    run("asyncio.run")
    assert "Acme Ltd" in capsys.readouterr().out


def test_the_webhook(run, largesse, world, receiver, eventually, capsys: pytest.CaptureFixture[str]) -> None:
    receive = run("def receive")["receive"]
    made = largesse.webhooks.create(receiver.url)
    order = largesse.send.gift(world.coffee, value=5, code_quantity=1, account_id=world.account)
    # The delivery of another test's order may arrive too.
    [(headers, body)] = eventually(lambda: [got for got in receiver.received if order.reference.encode() in got[1]])
    receive(body, headers, made.secret)
    largesse.webhooks.delete(made.id)
    assert order.reference in capsys.readouterr().out


def test_the_test(run, largesse) -> None:
    run("def test_thanks")["test_thanks"](largesse)


def test_the_order_of_the_guide_that_the_demo_cannot_pay(largesse, capsys: pytest.CaptureFixture[str]) -> None:
    [text] = re.findall(r"^```python\n(.*?)^```", ERRORS, re.DOTALL | re.MULTILINE)
    exec(text, {"largesse": largesse})  # noqa: S102 - text of our own
    assert capsys.readouterr().out.startswith("Top up first: ")
