"""A real deployment in staging that the suite is run against, with all keys it can use."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.conftest import Template
from tests.faults.installation import Installation

WORLD = Path(__file__).with_name("world.yaml")
LATER = "      - {key: thanks, name: Thanks, collection: acme-thanks}\n"


@dataclass(frozen=True)
class Deployment:
    """A running service, what the suite is told of it, and the installation behind it."""

    url: str
    public_url: str  # the same, where targets of webhooks on this machine are refused
    variables: Mapping[str, str] = field(repr=False)
    installation: Installation = field(repr=False)

    def check(
        self, *arguments: str, url: str | None = None, without: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Runs the command of the suite."""
        variables = {name: value for name, value in self.variables.items() if name not in without}
        return subprocess.run(
            [sys.executable, "-m", "largesse_conformance", url or self.url, *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )


@pytest.fixture(scope="session")
def deployment(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with template.clone() as url:
        installation = Installation.external(tmp_path_factory.mktemp("conformance"), url)
        world = WORLD.read_text()
        installation.fill(world.replace(LATER, ""))
        keys = installation.world["api_keys"]
        installation.fill(world)  # a template that is newer than the others
        listed = installation.run("keys", "list", "--customer", "acme")
        (number,) = re.findall(r"^ *(\d+)\b.*\bdeleted\b", listed, re.MULTILINE)
        installation.run("keys", "delete", number)
        installation.environ["LARGESSE_WEBHOOK_ALLOWED_NETWORKS"] = "127.0.0.0/8"
        open_service = installation.serve(extra=("--environment", "staging", "--with-worker"))
        del installation.environ["LARGESSE_WEBHOOK_ALLOWED_NETWORKS"]
        strict_service = installation.serve(extra=("--environment", "staging"))
        variables = {
            "CONFORMANCE_KEY": keys["main"],
            "CONFORMANCE_COLLEAGUE_KEY": keys["colleague"],
            "CONFORMANCE_OTHER_KEY": keys["other"],
            "CONFORMANCE_INVOICED_KEY": keys["invoiced"],
            "CONFORMANCE_NO_PLAN_KEY": keys["no_plan"],
            "CONFORMANCE_INACTIVE_KEY": keys["inactive"],
            "CONFORMANCE_DELETED_KEY": keys["deleted"],
            "CONFORMANCE_OTHER_ENVIRONMENT_KEY": keys["elsewhere"],
            "CONFORMANCE_ACCOUNT": str(installation.id("funding_accounts", "gbp")),
        }
        yield Deployment(open_service.url, strict_service.url, variables, installation)
        for service in installation.services:
            service.process.terminate()
            service.process.wait(30)
