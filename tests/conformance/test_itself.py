"""The service passes its own conformance suite, and the suite does what its documentation says."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from largesse_conformance.catalogue import all_checks, codes_of
from largesse_conformance.settings import KEYS
from tests.conformance.conftest import Deployment

Done = subprocess.CompletedProcess[str]
README = Path(__file__).parents[2] / "sdk/conformance/README.md"
ONE = ("--only", "products.unknown_product")


@pytest.fixture(scope="module")
def whole(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """A run of all checks, and the folder of its reports."""
    folder = tmp_path_factory.mktemp("reports")
    return deployment.check("--verbose", "--junit", f"{folder}/r.xml", "--html", f"{folder}/r.html"), folder


@pytest.mark.slow
def test_the_service_conforms(whole: tuple[Done, Path]) -> None:
    done, _ = whole
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^skip  (\S+):", done.stdout, re.MULTILINE) == ["webhooks.target_loopback"]
    assert f"{len(all_checks()) - 1} passed, 0 failed, 1 skipped" in done.stdout


@pytest.mark.slow
def test_a_run_says_what_it_spends_and_spends_no_more(deployment: Deployment, whole: tuple[Done, Path]) -> None:
    done, _ = whole
    said = re.search(
        r"^It orders at most (\d+) codes for ([\d.]+) GBP from account \d+ \(Acme float", done.stdout, re.MULTILINE
    )
    assert said
    assert int(said[1]) == codes_of(all_checks())
    plan = deployment.check("--plan")
    assert plan.returncode == 0
    assert "It orders at most" in plan.stdout


@pytest.mark.slow
def test_the_other_customer_may_be_invoiced(deployment: Deployment) -> None:
    invoiced = deployment.variables["CONFORMANCE_INVOICED_KEY"]
    done = replace(deployment, variables={**deployment.variables, "CONFORMANCE_OTHER_KEY": invoiced}).check(
        "--only", "isolation.*_of_another_customer"
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_run_leaves_nothing_behind(deployment: Deployment, whole: tuple[Done, Path]) -> None:
    done, _ = whole
    assert "could not be" not in done.stdout
    before = deployment.check("--plan")
    again = deployment.check("--only", "sending.*", "--only", "idempotency.*", "--only", "webhooks.*")
    assert again.returncode == 0, again.stdout
    held = [re.findall(r"Acme float \(.+?\)", one.stdout) for one in (before, deployment.check("--plan"))]
    assert held[0]
    assert held[0] == held[1]


@pytest.mark.slow
def test_every_option_and_variable_is_documented(deployment: Deployment) -> None:
    shown = deployment.check("--help").stdout
    readme = README.read_text()
    for name in {*re.findall(r"(?<![\w-])--[a-z-]+", shown), *re.findall(r"CONFORMANCE_[A-Z_]+", shown)}:
        assert f"`{name}" in readme, name
    assert set(re.findall(r"CONFORMANCE_[A-Z_]+", readme)) <= set(re.findall(r"CONFORMANCE_[A-Z_]+", shown))
    areas = {check.name.partition(".")[0] for check in all_checks()}
    assert set(re.findall(r"^\| `([a-z]+)` \|", readme, re.MULTILINE)) == areas


@pytest.mark.slow
def test_reports_hold_every_check_and_no_secret(deployment: Deployment, whole: tuple[Done, Path]) -> None:
    done, folder = whole
    root = ET.parse(folder / "r.xml").getroot()  # noqa: S314 - written by ourselves
    assert [case.get("name") for case in root.iter("testcase")] == [check.name for check in all_checks()]
    assert (root.get("tests"), root.get("failures")) == (str(len(all_checks())), "0")
    page = (folder / "r.html").read_text()
    assert page.count("<tr><td") == len(all_checks())
    for text in (done.stdout, page, (folder / "r.xml").read_text()):
        assert not re.search(r"lgs_(live|test)_\w{8}|whsec_\w|\b\d{4}-\d{4}-\d{4}-\d{4}", text)


@pytest.mark.slow
def test_targets_on_its_own_machine_are_refused_where_they_are_not_allowed(deployment: Deployment) -> None:
    done = deployment.check("--only", "webhooks.target_*", "--only", "delivery.signature", url=deployment.public_url)
    assert done.returncode == 0, done.stdout
    assert "24 passed, 0 failed, 1 skipped" in done.stdout
    assert "LARGESSE_WEBHOOK_ALLOWED_NETWORKS" in done.stdout


@pytest.mark.slow
def test_with_one_key_the_other_checks_are_skipped_with_a_reason(deployment: Deployment) -> None:
    optional = tuple(variable for name, (variable, _) in KEYS.items() if name != "main")
    done = deployment.check(
        "--only", "isolation.*", "--only", "authentication.*", without=(*optional, "CONFORMANCE_ACCOUNT")
    )
    assert done.returncode == 0, done.stdout
    for variable in (*optional[:2], "CONFORMANCE_ACCOUNT"):
        assert f"Set {variable} to " in done.stdout
    assert "It orders nothing. Set CONFORMANCE_ACCOUNT" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "without", "said"),
    [
        ((), ("CONFORMANCE_KEY",), "Set CONFORMANCE_KEY to a key of the customer to test."),
        (("--receiver", "9000"), (), "--receiver must be a host and a port"),
        (("--max-cost", "much"), (), "--max-cost must be an amount"),
        (("--max-cost", "nan"), (), "--max-cost must be an amount"),
        (("--max-cost", "inf"), (), "--max-cost must be an amount"),  # would spend without a limit
        (("--max-requests", "0"), (), "must be above 0"),
        (("--only", "nothing"), (), "no check has a name that matches --only"),
    ],
)
def test_bad_usage_ends_with_2(
    deployment: Deployment, arguments: tuple[str, ...], without: tuple[str, ...], said: str
) -> None:
    done = deployment.check(*arguments, without=without)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_no_service_ends_with_2(deployment: Deployment) -> None:
    done = deployment.check(*ONE, url="http://127.0.0.1:9")
    assert done.returncode == 2
    assert "The suite cannot start: GET /me got no answer: ConnectError." in done.stderr


@pytest.mark.slow
def test_production_is_named_on_purpose(deployment: Deployment) -> None:
    installation = deployment.installation
    service = installation.serve()
    variables = {"CONFORMANCE_KEY": deployment.variables["CONFORMANCE_OTHER_ENVIRONMENT_KEY"]}
    live = Deployment(service.url, service.url, variables, installation)
    refused = live.check(*ONE)
    assert refused.returncode == 2
    assert "add --production" in refused.stderr
    assert live.check(*ONE, "--production").returncode == 0


@pytest.mark.long
def test_the_limits_of_a_run_hold(deployment: Deployment) -> None:
    few = deployment.check("--only", "products.*", "--max-requests", "5")
    assert "the 5 requests of this run are used up (--max-requests)" in few.stdout
    poor = deployment.check("--only", "sending.*", "--max-cost", "12")
    assert re.search(r"this run has spent [\d.]+ of at most 12 \(--max-cost\)", poor.stdout)
    short = deployment.check("--only", "products.*", "--time-limit", "0.001")
    assert "the time of this run is used up (--time-limit)" in short.stderr
    assert (few.returncode, poor.returncode, short.returncode) == (1, 1, 2)
