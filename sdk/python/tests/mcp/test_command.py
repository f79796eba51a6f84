"""`largesse-mcp`: its settings, and who may connect over HTTP."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from largesse_client.mcp import SETTINGS, SettingError, read_settings
from largesse_client.mcp.quotes import Quoted, QuoteStore
from largesse_client.mcp.settings import Cap

COMMAND = [sys.executable, "-m", "largesse_client.mcp"]
GOOD = {"LARGESSE_URL": "http://127.0.0.1:1", "LARGESSE_API_KEY": "lgs_live_x"}


def run(*options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *options], env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_help_names_every_setting() -> None:
    told = run("--help")
    assert told.returncode == 0
    assert all(name in told.stdout for name in SETTINGS)


@pytest.mark.parametrize("name", ["LARGESSE_URL", "LARGESSE_API_KEY"])
def test_what_must_be_set_is_named(name: str) -> None:
    ended = run(**{**GOOD, name: " "})
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"largesse-mcp: {name} must be set")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.slow
def test_http_wants_a_token() -> None:
    ended = run("--http", **GOOD)
    assert ended.returncode == 1
    assert "LARGESSE_MCP_TOKEN must be set with --http" in ended.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LARGESSE_MCP_MOST_PER_ORDER", "much"),
        ("LARGESSE_MCP_MOST_PER_ORDER", "-1 GBP"),
        ("LARGESSE_MCP_MOST_PER_ORDER", "1 GBP, 2 gbp"),
        ("LARGESSE_MCP_MOST_PER_ORDER", "1,250 GBP"),
        ("LARGESSE_MCP_MOST_PER_ORDER", "300 EUR, 100,50 GBP"),
        ("LARGESSE_MCP_MOST_PER_DAY", "1e9"),
        ("LARGESSE_MCP_MOST_PER_DAY", "10 POUNDS"),
        ("LARGESSE_MCP_MOST_PER_DAY", ","),
        # A misspelt name would limit nothing.
        ("LARGESSE_MCP_MOST_PER_ODER", "250 GBP"),
        ("LARGESSE_MCP_Most_Per_Day", "250 GBP"),
        ("LARGESSE_MCP_SHOW_PINS", "maybe"),
        ("LARGESSE_MCP_TOKEN", "x" * 23),
        ("LARGESSE_MCP_STATE_DIR", "~no-such-person/state"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, text: str) -> None:
    with pytest.raises(SettingError, match=name):
        read_settings({**GOOD, name: text})


def test_what_is_misspelt_and_blank_is_unset() -> None:
    assert read_settings({**GOOD, "LARGESSE_MCP_MOST_PER_ODER": " "}) == read_settings(GOOD)


def test_an_empty_host_is_refused() -> None:
    """It would mean all addresses of the machine."""
    ended = run("--http", "--host", "", **GOOD)
    assert ended.returncode == 2
    assert "argument --host: must be an address" in ended.stderr.splitlines()[-1]


def test_settings_are_read(tmp_path: Path) -> None:
    settings = read_settings(
        {
            **GOOD,
            "LARGESSE_MCP_MOST_PER_ORDER": "250 GBP, 30000 jpy, 100",
            "LARGESSE_MCP_SHOW_PINS": "Yes",
            "LARGESSE_MCP_TOKEN": "x" * 24,
            "LARGESSE_MCP_STATE_DIR": str(tmp_path),
        }
    )
    assert [settings.most_per_order.of(currency) for currency in ("GBP", "JPY", "EUR")] == [250, 30000, 100]
    assert settings.most_per_day.of("GBP") is None
    assert (settings.shows_pins, settings.state_dir) == (True, tmp_path)
    for secret in ("lgs_live_x", "x" * 24):
        assert secret not in repr(settings)
    assert Cap.read("X", "250 GBP").of("EUR") == 0
    assert Cap.read("X", "250 GBP,300 EUR").of("EUR") == 300


def test_the_state_may_be_under_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell expands `~` in the configuration of an assistant."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_settings({**GOOD, "LARGESSE_MCP_STATE_DIR": "~/gifts"}).state_dir == tmp_path / "gifts"


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_does_not_exist_is_named(port: str) -> None:
    ended = run("--http", "--port", port, **GOOD)
    assert ended.returncode == 2
    assert "argument --port" in ended.stderr.splitlines()[-1]


def test_what_was_quoted_is_kept_for_a_day_and_the_last_thousand() -> None:
    now_s = 0.0
    quotes = QuoteStore(lambda: now_s)
    for number in range(1_001):
        quotes.add(Quoted("gift", {}, Decimal(1), "GBP", str(number)))
    assert quotes.find("0") is None
    first = quotes.find("1")
    assert first is not None
    now_s = 24 * 3600 - 1
    assert quotes.find("1") == first
    now_s = 24 * 3600
    assert quotes.find("1") is None


@pytest.mark.slow
async def test_nobody_comes_in_without_the_token(over_http: Any, token: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream"}
    async with over_http() as tools, httpx.AsyncClient(headers=accept) as stranger:
        for header in (None, "", "Bearer", f"Bearer {token}x", f"Bearer {token[:-1]}", token, f"Basic {token}"):
            headers = {} if header is None else {"Authorization": header}
            for method in ("POST", "GET", "DELETE"):
                answer = await stranger.request(method, tools.url, json=body, headers=headers)
                assert answer.status_code == 401
                assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        # The name of the scheme may be in lower case.
        headers = {"Authorization": f"bearer {token}"}
        answer = await stranger.post(tools.url, json=body, headers=headers)
        assert answer.status_code != 401
        # With the token, but from a page of another host whose name was made to point here.
        headers = {"Authorization": f"Bearer {token}", "Host": "elsewhere.example"}
        answer = await stranger.post(tools.url, json=body, headers=headers)
        assert answer.status_code == 421
