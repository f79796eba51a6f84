"""The manifests of Kubernetes, the compose file and the dashboard: valid by their schemas, and about what Largesse has."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from tests.cli.conftest import commands_in
from tests.test_docs import METRICS

from largesse.base.settings import load_settings, setting_names
from largesse.cli import main

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
OVERLAYS = sorted(path.name for path in (KUBERNETES / "overlays").iterdir())
OLDEST = "1.30"  # the first in which `sleep` before the stop is on by default
WORKLOADS = {"Deployment", "Job", "CronJob"}
LONGEST_DRAIN_S = 30
USER = 10001

overlays = pytest.mark.parametrize("overlay", OVERLAYS)


@cache
def built(overlay: str) -> list[dict[str, Any]]:
    """What `kubectl apply -k` would send."""
    assert shutil.which("kubectl"), "install it: apt install kubernetes-client"
    done = subprocess.run(
        ["kubectl", "kustomize", KUBERNETES / "overlays" / overlay], capture_output=True, text=True, check=True
    )
    return list(yaml.safe_load_all(done.stdout))


def pods(overlay: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The name, labels and specification of the pods of each workload."""
    for one in built(overlay):
        if one["kind"] in WORKLOADS:
            outer = one["spec"]["jobTemplate"] if one["kind"] == "CronJob" else one
            template = outer["spec"]["template"]
            yield one["metadata"]["name"], template["metadata"]["labels"], template["spec"]


def of_kind(overlay: str, kind: str) -> list[dict[str, Any]]:
    return [one for one in built(overlay) if one["kind"] == kind]


def takes(arguments: list[str]) -> bool:
    """Whether `largesse` has such a command; raises for an option that it does not have."""
    name, *rest = arguments
    commands_in(main)[name].make_context(name, list(rest))
    return True


@overlays
@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_kubernetes_takes_the_manifests(overlay: str, version: str) -> None:
    for one in built(overlay):
        if one["apiVersion"] != "monitoring.coreos.com/v1":  # of an operator, in no schema of Kubernetes
            kubernetes_validate.validate(one, version, strict=True)


def test_the_schemas_find_what_is_wrong() -> None:
    (broken,) = [
        one for one in built("production") if one["metadata"]["name"] == "largesse-worker" and "replicas" in one["spec"]
    ]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**broken, "spec": {**broken["spec"], "replicas": "two"}}, OLDEST, strict=True)


@overlays
def test_a_pod_may_do_little(overlay: str) -> None:
    for name, _, spec in pods(overlay):
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] == USER, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }, name
        assert container["resources"]["limits"]["memory"], name
        assert container["image"].startswith("largesse:"), name


@overlays
def test_a_pod_runs_a_command_that_exists(overlay: str) -> None:
    assert all(takes(spec["containers"][0]["args"]) for _, _, spec in pods(overlay))


@overlays
def test_a_drain_is_waited_for(overlay: str) -> None:
    for name, labels, spec in pods(overlay):
        if labels["app.kubernetes.io/component"] in {"serve", "staging", "worker"}:
            (container,) = spec["containers"]
            before_s = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
            assert spec["terminationGracePeriodSeconds"] > LONGEST_DRAIN_S + before_s, name
            assert before_s >= 5 or "worker" in name, name
            assert container["livenessProbe"], name
            assert container["startupProbe"], name


@overlays
def test_a_restart_leaves_enough_running(overlay: str) -> None:
    for one in of_kind(overlay, "Deployment"):
        component = one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
        if component != "worker":
            assert one["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
            (container,) = one["spec"]["template"]["spec"]["containers"]
            assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    budgets = {one["metadata"]["name"]: one["spec"] for one in of_kind(overlay, "PodDisruptionBudget")}
    assert {"largesse-serve", "largesse-worker"} <= budgets.keys()


@overlays
def test_what_selects_pods_finds_some(overlay: str) -> None:
    every = [labels for _, labels, _ in pods(overlay)]

    def finds(labels: dict[str, str]) -> bool:
        return any(labels.items() <= one.items() for one in every)

    for one in built(overlay):
        spec = one.get("spec", {})
        if one["kind"] == "Service":
            assert finds(spec["selector"]), one["metadata"]
        for selector in (
            spec.get("podSelector", {}),
            spec.get("selector", {}) if one["kind"] == "PodDisruptionBudget" else {},
        ):
            if "matchLabels" in selector:
                assert finds(selector["matchLabels"]), one["metadata"]


def test_prometheus_finds_every_process() -> None:
    (monitor,) = of_kind("production", "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    (service,) = [
        one for one in of_kind("production", "Service") if wanted.items() <= one["metadata"]["labels"].items()
    ]
    (endpoint,) = monitor["spec"]["endpoints"]
    (port,) = [port for port in service["spec"]["ports"] if port["name"] == endpoint["port"]]
    scraped = {
        name
        for name, labels, spec in pods("production")
        if service["spec"]["selector"].items() <= labels.items()
        and port["targetPort"] in {one["name"] for one in spec["containers"][0].get("ports", [])}
    }
    assert scraped == {"largesse-serve", "largesse-staging", "largesse-worker"}


@overlays
def test_settings_and_secrets_are_apart(overlay: str) -> None:
    (settings,) = of_kind(overlay, "ConfigMap")
    load_settings(settings["data"])
    secret = {"LARGESSE_MASTER_KEY", "LARGESSE_DATABASE_URL", "LARGESSE_OWNER_DATABASE_URL", "LARGESSE_SMTP_URL"}
    assert not secret & settings["data"].keys()
    assert not of_kind(overlay, "Secret")
    for name, labels, spec in pods(overlay):
        sources = [source.get("secretRef", {}).get("name") for source in spec["containers"][0]["envFrom"]]
        assert "largesse" in sources, name
        if labels["app.kubernetes.io/component"] in {"serve", "staging", "worker"}:
            assert "largesse-owner" not in sources, name


# Compose


def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def check_compose(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", path],
        capture_output=True,
        text=True,
        check=False,
    )


def test_compose_takes_the_file(tmp_path: Path) -> None:
    done = check_compose(ROOT / "compose.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    broken = tmp_path / "compose.yaml"
    broken.write_text((ROOT / "compose.yaml").read_text().replace("read_only: true", "read_only: [1]"))
    assert check_compose(broken).returncode == 1


def test_compose_runs_commands_that_exist_with_settings_that_exist(tmp_path: Path) -> None:
    (tmp_path / "master-key").write_text("5e" * 32)
    ours = {name: one for name, one in compose()["services"].items() if "largesse" in one["image"]}
    assert ours.keys() == {"migrate", "serve", "staging", "worker"}
    for name, service in ours.items():
        assert takes(service["command"])
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert int(service["stop_grace_period"].removesuffix("s")) > LONGEST_DRAIN_S, name
        given = {
            key: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value).replace("/run/secrets", str(tmp_path))
            for key, value in service["environment"].items()
            if value is not None
        }
        files = {Path(value).name for key, value in given.items() if key.endswith("_FILE")}
        assert files == set(service["secrets"]) == {"master-key"}
        settings = load_settings(given)
        assert settings.master_keys
        assert settings.smtp_url is not None
        assert settings.database_url is not None


def test_compose_passes_every_setting_on() -> None:
    elsewhere = {
        "LARGESSE_DATA_DIR",  # of an embedded database
        "LARGESSE_ENVIRONMENT",  # an option of the command
        "LARGESSE_OWNER_DATABASE_URL",  # all log in as the owner
        "LARGESSE_SUPPLIERS",  # names files, which need a volume
    }
    for name in ("migrate", "serve", "staging", "worker"):
        given = {key.removesuffix("_FILE") for key in compose()["services"][name]["environment"]}
        assert given == (setting_names() - elsewhere) | {"FORWARDED_ALLOW_IPS"}, name


# Grafana


def test_the_dashboard_shows_metrics_that_exist() -> None:
    dashboard = json.loads((ROOT / "deploy/grafana/largesse.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    known = {re.sub(r"_total$", "", name) for name in METRICS}
    for panel in panels:
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            named = re.findall(r"largesse_\w+", target["expr"])
            assert named or "process_" in target["expr"], panel["title"]
            assert {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in named} <= known, panel["title"]
    shown = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    assert {"orders_placed", "queue_oldest_due", "mails", "pool_waiting"} <= set(
        re.findall(r"largesse_(\w+?)(?:_total|_seconds|\b)", shown)
    )


def test_prometheus_takes_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    assert shutil.which("promtool"), "install it: apt install prometheus"
    dashboard = json.loads((ROOT / "deploy/grafana/largesse.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    rules = [
        {"record": f"panel:{number}", "expr": expr.replace("$__rate_interval", "5m")}
        for number, expr in enumerate(expressions)
    ]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", tmp_path / "rules.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# The deployed service restarts without a refused connection: what stops is asked to, and no file names a host of images.


@pytest.mark.parametrize("path", ["Containerfile", "compose.yaml", "deploy/container/build"])
def test_no_file_names_a_host_of_images(path: str) -> None:
    text = (ROOT / path).read_text()
    assert not re.search(r"\b(docker|quay|ghcr|gcr|mcr)\.\w+/|deb\.debian", text)
