"""Tries both ends of what `pyproject.toml` allows: `python tests/bounds.py [lowest] [newest] [pytest arguments]`.

For each end the wheel is installed into an environment of its own, beside the oldest or the newest releases that its bounds allow,
and a part of the tests runs there that goes through every dependency. `make test-bounds` calls it.
"""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "build" / "bounds"
# What these tests need beside the wheel, in the versions of the lock.
TOOLS = (
    "aiohttp",
    "aiosmtpd",
    "gidgethub",
    "httpx",
    "hypothesis",
    "psutil",
    "pytest",
    "pytest-asyncio",
    "pytest-timeout",
    "pytest-xdist",
    "standardwebhooks",
)
TESTS = (
    "tests/base",
    "tests/catalogue",
    "tests/cli/test_commands.py",
    "tests/db/test_migrate.py",
    "tests/mail/test_letter.py",
    "tests/mail/test_sending.py",
    "tests/mail/test_tls.py",
    "tests/webhooks/test_channel.py",
    "tests/webhooks/test_receiving.py",
    "tests/webhooks/test_resolver.py",
    "tests/faults/test_database_away.py::test_of_several_processes_each_says_so_and_none_is_started_again",
    "tests/ledger",
    "tests/customers",
    "tests/orders/test_placer.py",
    "tests/connections/test_trailers.py",
    "tests/web/api/test_bodies.py",
    "tests/web/api/test_catalogue.py",
    "tests/web/api/test_pages.py",
    "tests/web/api/test_send.py",
    "tests/web/claim/test_claiming.py",
    "tests/seed",
)


def dependencies() -> list[Requirement]:
    """What a user of the wheel gets, with the bounds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [Requirement(text) for text in project["dependencies"]]


def bound(requirement: Requirement, operator: str) -> str:
    """The version behind `>=` or `<`. Raises ValueError where there is none, or more than these two."""
    found = {specifier.operator: specifier.version for specifier in requirement.specifier}
    if found.keys() != {">=", "<"}:
        raise ValueError(f"{requirement} must have a lower bound (>=) and an upper one (<), and nothing else")
    return found[operator]


def locked() -> dict[str, str]:
    """The versions of the locks, by name."""
    found = {}
    for lock in ("requirements.lock", "requirements-dev.lock"):
        lines = re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", (ROOT / lock).read_text("utf-8"))
        found |= {canonicalize_name(name): version for name, version in lines}
    return found


def install(end: str) -> Path:
    """An environment with the wheel and the releases of one end; its Python."""
    place = BUILT / end
    venv.create(place, clear=True, with_pip=True)
    python = place / "bin" / "python"
    versions = locked()
    wanted = [f"{tool}=={versions[canonicalize_name(tool)]}" for tool in TOOLS]
    if end == "lowest":
        wanted += [f"{requirement.name}=={bound(requirement, '>=')}" for requirement in dependencies()]
    (wheel,) = BUILT.glob("largesse-*.whl")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--only-binary", ":all:", wheel, *wanted], check=True)
    return python


def print_versions(end: str, python: Path) -> None:
    """One line with what was installed."""
    told = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
    versions = {canonicalize_name(name): v for name, v in re.findall(r"(?m)^([\w.-]+)==(\S+)", told)}
    ours = (canonicalize_name(requirement.name) for requirement in dependencies())
    sys.stdout.write(f"{end}: {', '.join(f'{name} {versions[name]}' for name in sorted(ours))}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """The first exit code of pytest that is not 0."""
    ends = [end for end in ("lowest", "newest") if end in arguments] or ["lowest", "newest"]
    more = [argument for argument in arguments if argument not in {"lowest", "newest"}]
    BUILT.mkdir(parents=True, exist_ok=True)
    for old in BUILT.glob("*.whl"):
        old.unlink()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", BUILT, ROOT], check=True)
    for end in ends:
        python = install(end)
        print_versions(end, python)
        done = subprocess.run([python, "-m", "pytest", *(more or ["-q", *TESTS])], cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
