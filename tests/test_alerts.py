"""Each alert fires when it should and is quiet when it should, by promtool's unit tests, on series that processes really export."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.web.api.conftest import MASTER_KEY
from tests.worker.test_metrics import free_port

import largesse.main  # noqa: F401 - what serves and works has registered its metrics

ALERTS = Path(__file__).parents[1] / "deploy/prometheus/largesse.yml"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
PATIENCE_S = 45.0

SERVE = 'instance="a:9100",job="largesse"'  # the labels that scraping adds
WORKER = 'instance="a:9110",job="largesse"'


@dataclass(frozen=True)
class Case:
    """Series in Prometheus' notation, a value a minute, under which the alert fires after so many minutes, and others under which it never does."""

    after: int
    fires: dict[str, str]
    quiet: dict[str, str]


def requests(status: int, operation: str = "sendGift") -> str:
    return f'largesse_requests_total{{{SERVE},operation="{operation}",status="{status}"}}'


def slow(bound: str) -> str:
    return f'largesse_request_seconds_bucket{{{SERVE},operation="sendGift",le="{bound}"}}'


CASES = {
    "LargesseProcessDown": Case(3, {f"up{{{SERVE}}}": "0x10"}, {f"up{{{SERVE}}}": "1x3 0 1x6"}),
    "LargesseNoWorker": Case(
        6,
        {f"largesse_worker_loops{{{SERVE}}}": "0x20"},
        {f"largesse_worker_loops{{{SERVE}}}": "0x20", f"largesse_worker_loops{{{WORKER}}}": "23x20"},
    ),
    "LargesseFailing": Case(
        6,
        {requests(500): "0x4 1x10", requests(200): "0+60x20"},
        {requests(500): "7x20", requests(200): "0+60x20", requests(503): "0x20"},
    ),
    "LargesseUnavailable": Case(
        8, {requests(503): "0+3x20", requests(200): "0+97x20"}, {requests(503): "0+2x20", requests(200): "0+98x20"}
    ),
    "LargesseDatabaseFull": Case(
        2,
        {f"largesse_database_full{{{SERVE}}}": "1x10", f"largesse_database_full{{{WORKER}}}": "0x10"},
        {f"largesse_database_full{{{SERVE}}}": "0 1 0x10", f"largesse_database_full{{{WORKER}}}": "0x10"},
    ),
    "LargesseSlow": Case(
        16,
        {slow("1.0"): "0+94x30", slow("2.5"): "0+100x30", slow("+Inf"): "0+100x30"},
        {slow("1.0"): "0+96x30", slow("2.5"): "0+100x30", slow("+Inf"): "0+100x30"},
    ),
    "LargesseWaitsForDatabase": Case(
        10,
        {f"largesse_pool_waiting{{{SERVE}}}": "11x20"},
        {f"largesse_pool_waiting{{{SERVE}}}": "11 12 13 10 11 12 13 10 11 12 13 10 11 12 13 10"},
    ),
    "LargesseConnectionsFull": Case(
        6,
        {f"largesse_connections_refused_total{{{SERVE}}}": "0+5x20"},
        {f"largesse_connections_refused_total{{{SERVE}}}": "5x20"},
    ),
    "LargesseQueueLate": Case(
        6,
        {f'largesse_queue_oldest_due_seconds{{{WORKER},queue="mail"}}': "301+60x20"},
        {f'largesse_queue_oldest_due_seconds{{{WORKER},queue="mail"}}': "300x20"},
    ),
    "LargesseMailServerAway": Case(
        20,
        {f'largesse_mails_total{{{WORKER},outcome="server_away"}}': "0+1x30"},
        {
            f'largesse_mails_total{{{WORKER},outcome="server_away"}}': "0 2x30",
            f'largesse_mails_total{{{WORKER},outcome="sent"}}': "0+10x30",
        },
    ),
    "LargesseMailFailing": Case(
        20,
        {f'largesse_mails_total{{{WORKER},outcome="server_failed"}}': "0x4 1 1 2 2 3+1x40"},
        {
            f'largesse_mails_total{{{WORKER},outcome="server_failed"}}': "0+1x80",
            f'largesse_mails_total{{{WORKER},outcome="sent"}}': "0+1x80",
        },
    ),
    "LargesseMailRefused": Case(
        25,
        {f'largesse_mails_total{{{WORKER},outcome="server_refused"}}': "0x5 1x30"},
        {
            f'largesse_mails_total{{{WORKER},outcome="server_refused"}}': "0x80",
            f'largesse_mails_total{{{WORKER},outcome="bounced"}}': "0+1x80",
        },
    ),
    "LargesseMailUnreadable": Case(
        11,
        {f'largesse_mail_put_off{{{WORKER},fault="service"}}': "1x20"},
        {f'largesse_mail_put_off{{{WORKER},fault="service"}}': "0x20"},
    ),
    "LargesseMailHeld": Case(
        11,
        {f"largesse_mail_held{{{WORKER}}}": "1x20", f"largesse_mail_held{{{SERVE}}}": "0x20"},
        {f"largesse_mail_held{{{WORKER}}}": "0x20", f"largesse_mail_held{{{SERVE}}}": "0x20"},
    ),
    "LargesseClockWrong": Case(
        6,
        {f"largesse_clock_ahead_seconds{{{WORKER}}}": "-3600x20"},
        {f"largesse_clock_ahead_seconds{{{WORKER}}}": "-30x20"},
    ),
    "LargesseOutcomesWaiting": Case(
        6,
        {f'largesse_outcomes_waiting{{{WORKER},kind="mail"}}': "101x20"},
        {f'largesse_outcomes_waiting{{{WORKER},kind="mail"}}': "100x20"},
    ),
    "LargesseOutcomesGivenUp": Case(
        6,
        {f'largesse_outcomes_given_up_total{{{WORKER},kind="webhook"}}': "0x3 1x20"},
        {f'largesse_outcomes_given_up_total{{{WORKER},kind="webhook"}}': "1x20"},
    ),
    "LargesseWorkerRestarts": Case(
        16,
        {f'largesse_worker_loop_restarts_total{{{WORKER},loop="prune"}}': "0+1x30"},
        {f'largesse_worker_loop_restarts_total{{{WORKER},loop="prune"}}': "0x5 12x30"},  # the database restarts
    ),
    "LargesseWebhooksFailing": Case(
        365,
        {f"largesse_webhook_failing_subscriptions{{{WORKER}}}": "1x400"},
        {f"largesse_webhook_failing_subscriptions{{{WORKER}}}": "1x300 0 1x99"},
    ),
    "LargesseStockEmpty": Case(
        11,
        {f'largesse_stock_waiting{{{WORKER},product="coffee",value="10",currency="GBP"}}': "1x20"},
        {f'largesse_stock_waiting{{{WORKER},product="coffee",value="10",currency="GBP"}}': "0x20"},
    ),
    "LargesseStockLow": Case(
        11,
        {f'largesse_stock_low{{{WORKER},product="coffee",value="10",currency="GBP"}}': "0x20"},
        {f'largesse_stock_low{{{WORKER},product="coffee",value="10",currency="GBP"}}': "4x3 _x20"},
    ),
    "LargesseSupplierStuck": Case(
        11,
        {f'largesse_supplier_orders_stuck{{{WORKER},supplier="acme"}}': "1x20"},
        {f'largesse_supplier_orders_stuck{{{WORKER},supplier="acme"}}': "0x20"},
    ),
    "LargesseKeysGuessed": Case(
        16,
        {f'largesse_failed_authentications_total{{{SERVE},reason="limited"}}': "0+1x30"},
        {
            f'largesse_failed_authentications_total{{{SERVE},reason="limited"}}': "0x30",
            f'largesse_failed_authentications_total{{{SERVE},reason="unknown"}}': "0+9x30",
        },
    ),
    "LargesseLogLost": Case(
        4,
        {f"largesse_log_lines_lost_total{{{SERVE}}}": "0x2 9x20"},
        {f"largesse_log_lines_lost_total{{{SERVE}}}": "9x20"},
    ),
    "LargesseOpenFiles": Case(
        6,
        {f"process_open_fds{{{SERVE}}}": "81x20", f"process_max_fds{{{SERVE}}}": "100x20"},
        {f"process_open_fds{{{SERVE}}}": "80x20", f"process_max_fds{{{SERVE}}}": "100x20"},
    ),
    "LargesseOrderIdsFew": Case(
        11,
        {f"largesse_order_ids_left{{{SERVE}}}": "214748363x20"},
        {f"largesse_order_ids_left{{{SERVE}}}": "214748364x20"},
    ),
    "LargesseVerifyFailed": Case(
        1,
        {'node_systemd_unit_state{name="largesse-verify.service",state="failed"}': "1x5"},
        {'node_systemd_unit_state{name="largesse-verify.service",state="failed"}': "0x5"},
    ),
}
OF_OTHERS = {"up", "node_systemd_unit_state"}  # what Prometheus and node_exporter add
ADDED = {"instance", "job"}


def test_every_alert_has_its_case() -> None:
    assert sorted(CASES) == sorted(rule["alert"] for rule in RULES)


def unit_test(name: str, alert: str, series: dict[str, str], minutes: range, *, fires: bool) -> dict[str, object]:
    firing = f'count by (alertname) (ALERTS{{alertname="{alert}",alertstate="firing"}})'
    sample = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if fires else []
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "promql_expr_test": [{"expr": firing, "eval_time": f"{minute}m", "exp_samples": sample} for minute in minutes],
    }


@pytest.mark.slow
def test_alerts_fire_and_are_quiet(tmp_path: Path) -> None:
    if shutil.which("promtool") is None and not os.environ.get("CI"):
        pytest.skip("promtool is not installed here: apt install prometheus")
    tests = []
    for alert, case in CASES.items():
        at = case.after
        tests.append(unit_test(f"{alert} fires", alert, case.fires, range(at, at + 1), fires=True))
        tests.append(unit_test(f"{alert} is quiet", alert, case.quiet, range(at + 5), fires=False))
    tests += mail_stops()
    # With no process left there is no series at all.
    tests.append(unit_test("nothing runs", "LargesseNoWorker", {}, range(6, 7), fires=True))
    told = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(told))
    done = subprocess.run(
        ["promtool", "test", "rules", tmp_path / "tests.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def mail_stops() -> list[dict[str, object]]:
    """A server that puts off every recipient fires it, too; one recipient who is put off, or a server that is right again, does not."""
    failed, retry, sent = (
        f'largesse_mails_total{{{WORKER},outcome="{outcome}"}}' for outcome in ("server_failed", "retry", "sent")
    )
    few, right_again = {retry: "0 1 2 2 3 3 3 3 4x60"}, {failed: "0 1 2 3x60", sent: "0x5 1x60"}
    put_off, away = (
        f'largesse_mail_put_off{{{WORKER},fault="server"}}',
        f'largesse_mails_total{{{WORKER},outcome="server_away"}}',
    )
    one_waits, all_wait = {put_off: "0 1x180", failed: "0 1x180"}, {put_off: "0 1x60", away: "0+1x60"}
    return [
        unit_test("all are put off", "LargesseMailFailing", {retry: "0+5x60"}, range(30, 31), fires=True),
        unit_test("one is put off", "LargesseMailFailing", few, range(61), fires=False),
        unit_test("one waits", "LargesseMailFailing", one_waits, range(20, 180, 40), fires=True),
        unit_test("it is away", "LargesseMailFailing", all_wait, range(61), fires=False),
        unit_test("it is right again", "LargesseMailFailing", right_again, range(61), fires=False),
    ]


@contextmanager
def exporting(database_url: str, *command: str) -> Iterator[str]:
    """What a process that has just started and done nothing tells Prometheus."""
    port = free_port()
    environ = {"LARGESSE_DATABASE_URL": database_url, "LARGESSE_MASTER_KEY": MASTER_KEY.hex()}
    process = subprocess.Popen(
        [sys.executable, "-m", "largesse", *command, "--metrics-port", str(port)],
        env={**os.environ, **environ},
        stderr=subprocess.DEVNULL,
    )
    try:
        told = ""
        deadline = time.monotonic() + PATIENCE_S
        while "largesse_pool_limit" not in told or not re.search(r"worker_loops [1-9]|operation=", told):
            assert time.monotonic() < deadline, told
            assert process.poll() is None
            try:
                told = httpx.get(f"http://127.0.0.1:{port}/metrics").text
            except httpx.TransportError:
                time.sleep(0.05)
        yield told
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def parse(series: str) -> tuple[str, dict[str, str]]:
    name, _, labels = series.partition("{")
    return name, dict(re.findall(r'(\w+)="([^"]*)"', labels))


@pytest.mark.long
def test_the_series_of_the_cases_are_exported(database_url: str) -> None:
    """By name; and with the same labels, before anything happened, where an alert waits for a rise: the first value is no rise."""
    names: set[str] = set()
    begun: set[tuple[str, frozenset[tuple[str, str]]]] = set()
    with (
        exporting(database_url, "serve", "--port", str(free_port())) as serving,
        exporting(database_url, "worker") as working,
    ):
        for told in (serving, working):
            for family in text_string_to_metric_families(told):
                names.add(family.name)
                begun.update((sample.name, frozenset(sample.labels.items())) for sample in family.samples)
    for case in CASES.values():
        for series in {**case.quiet, **case.fires}:
            name, labels = parse(series)
            assert name in OF_OTHERS or re.sub(r"_(total|bucket)$", "", name) in names, series
            if name.endswith("_total") and series in case.fires and labels.get("status") != "200":
                assert (name, frozenset(item for item in labels.items() if item[0] not in ADDED)) in begun, series
