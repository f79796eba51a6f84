"""The TypeScript client: its own tests on node, its generated files, its package and its samples."""

import json
import re
import tarfile
from pathlib import Path

import pytest
from tests.typescript.conftest import PACKAGE, TSC, run_in
from tools.dist import NPM_PACKAGES, VERSIONS, pack
from tools.typescript_types import FOLDER, Writer

from largesse.web.api.openapi.document import build_document, build_events_document
from largesse.web.api.routes import operations_of

ROOT = PACKAGE.parents[1]
pytestmark = pytest.mark.embedded  # the server has its own database
FILES = sorted(path.name.removesuffix(".test.ts") for path in (PACKAGE / "tests").glob("*.test.ts"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_on_node(node, name: str) -> None:
    printed = node("--test", "--test-reporter=tap", f"build/tests/{name}.test.js")
    assert re.search(r"^# pass [1-9]", printed, re.MULTILINE)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_thousand_orders_through_a_proxy_that_withholds_each_third_answer(node) -> None:
    arguments = (
        "--test",
        "--test-reporter=tap",
        "--test-name-pattern",
        "every order is placed once",
        "build/tests/lost-answers.test.js",
    )
    printed = node(*arguments, CLIENT_ORDERS="1000", timeout_s=280)
    assert "1000 orders, 1000 results, 0 doubled" in printed


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("runtime", ["bun", "deno"])
def test_on_other_runtimes(built: Path, largesse_server, tmp_path: Path, runtime: str) -> None:
    """Those that come from npm: docs/testing.md says how."""
    programs = {"bun": "@oven/bun-*/bin/bun", "deno": "@deno/*/deno"}
    (program, *_) = [*PACKAGE.glob(f"tests/runtimes/node_modules/{programs[runtime]}"), None]
    if program is None:
        pytest.skip(f"{runtime} is not installed")
    # The compiled tests look for types beside them: Deno would check them anew, tsc has.
    # Bun ends a test after five seconds unless told otherwise, however slow the machine is; node and Deno do not.
    options = {
        "bun": ["test", "--timeout=100000"],
        "deno": ["test", "--no-check", "--no-lock", "--no-remote", "--allow-all"],
    }
    environ = {
        "LARGESSE": largesse_server.base_url,
        "LARGESSE_API_KEY": largesse_server.api_key,
        "DENO_DIR": str(tmp_path),
        "DENO_NO_UPDATE_CHECK": "1",
    }
    for name in FILES:
        printed = run_in(built, [program, *options[runtime], f"./build/tests/{name}.test.js"], environ)
        assert re.search(r"[1-9]\d* pass", printed), printed


def test_the_generated_files_are_up_to_date() -> None:
    files = Writer(build_document(operations_of("production")), build_events_document()).files()
    for name, text in files.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, "run make typescript-types"


def test_a_checkout_has_the_version_of_no_build() -> None:
    for path in (*PACKAGE.parent.glob("*/package.json"), *PACKAGE.parent.glob("*/package-lock.json")):
        assert json.loads(path.read_text())["version"] == VERSIONS["UNKNOWN"], path


@pytest.mark.long
@pytest.mark.parametrize("package", NPM_PACKAGES, ids=lambda package: package.name)
def test_a_package_has_the_version_of_its_commit(package: Path, tmp_path: Path) -> None:
    if not (package / "node_modules").exists():
        pytest.skip(f"npm ci --ignore-scripts --prefix sdk/{package.name}")
    version = VERSIONS["version_of"](ROOT)
    with tarfile.open(pack(package, tmp_path)) as packed:
        texts = {
            one.name: packed.extractfile(one).read().decode() for one in packed if one.name.endswith((".js", ".json"))
        }
    assert json.loads(texts["package/package.json"])["version"] == version
    assert package.name == "n8n" or f'"{version}"' in texts["package/dist/version.js"]


def test_locks_name_no_registry() -> None:
    locks = [path for path in PACKAGE.parent.glob("**/package-lock.json") if "node_modules" not in path.parts]
    assert len(locks) >= 4
    for lock in locks:
        assert not re.search(r'"resolved": "\w+:', lock.read_text()), lock


@pytest.fixture(scope="session")
def project(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the package as npm packs and installs it."""
    folder = tmp_path_factory.mktemp("project")
    packed = pack(built, folder)
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    run_in(folder, ["npm", "install", "--offline", "--no-audit", "--no-fund", packed], {})
    installed = folder / "node_modules/largesse-client"
    assert sorted(path.name for path in installed.iterdir()) == ["LICENSE", "README.md", "dist", "package.json", "src"]
    assert [path.name for path in (folder / "node_modules").iterdir() if path.name[0] != "."] == ["largesse-client"]
    types = PACKAGE / "node_modules/@types"
    options = {
        "strict": True,
        "target": "es2022",
        "module": "nodenext",
        "types": ["node"],
        "typeRoots": [str(types)],
        "rootDir": ".",
        "outDir": "out",
    }
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": ["*.ts", "docs/*.ts"]}))
    return folder


TS_BLOCK = r"^```ts\n(.*?)^```"
SAMPLES = re.findall(TS_BLOCK, (PACKAGE / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.long
def test_the_samples_of_the_readme_run(node, project: Path) -> None:
    first, listing, errors, receiving = SAMPLES
    receiving += """
import { createHmac } from "node:crypto";

const secret = `whsec_${btoa("of the test")}`;
const body = JSON.stringify({ event: "gift.returned" });
const at = String(Math.floor(Date.now() / 1_000));
const signature = `v1,${createHmac("sha256", "of the test").update(`1.${at}.${body}`).digest("base64")}`;
const headers = { "webhook-id": "1", "webhook-timestamp": at, "webhook-signature": signature };
console.log((await receive(new Request("http://x", { method: "POST", body, headers }), [secret])).status);
"""
    for name, text in {"first": first, "listing": listing, "errors": errors, "receiving": receiving}.items():
        (project / f"{name}.ts").write_text(text)
    assert run_in(project, [TSC, "--project", "."], {}) == ""
    # This resolution ignores `exports`: it finds the types of a subpath by `typesVersions` alone.
    node10 = ["--noEmit", "--module", "esnext", "--moduleResolution", "node10"]
    assert run_in(project, [TSC, "--project", ".", *node10], {}) == ""
    printed = [node("out/first.js", folder=project) for _ in range(2)]
    assert printed[0] == printed[1]
    assert re.fullmatch(r"\w{20} 10\.0 GBP\n", printed[0])
    assert printed[0].split()[0] in node("out/listing.js", folder=project)
    assert node("out/errors.js", folder=project) == "1 value\n"
    assert node("out/receiving.js", folder=project) == "204\n"


START = """import { Largesse } from "largesse-client";

const largesse = new Largesse(process.env.LARGESSE!, process.env.LARGESSE_API_KEY!);
"""


@pytest.mark.long
def test_the_samples_of_the_documentation_run(node, largesse_server, project: Path) -> None:
    """Each on its own; one of a guide with the client of the guide on authentication, and with an order and a subscription that exist."""
    with largesse_server.client() as largesse:
        payer = next(largesse.funding_accounts.list()).id
        order = largesse.send.gift(1, value=10, account_id=payer, recipients=["sam@example.com"]).reference
        subscription = str(largesse.webhooks.create("https://hooks.example.com/largesse").id)
    folder = project / "docs"
    folder.mkdir()
    names = []
    for page in sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guides").glob("*.md")]):
        for at, text in enumerate(re.findall(TS_BLOCK, page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)):
            names.append(f"{page.stem}-{at}")
            whole = text if "new Largesse(" in text else START + text
            whole = whole.replace("F6Z9C7XE1MN9MKA1FDPH", order).replace(
                "3f2b8c1e-5d0a-4b7e-9c61-0a8d4e2f7b15", subscription
            )
            (folder / f"{names[-1]}.ts").write_text(whole)
    assert len(names) > 10
    assert run_in(project, [TSC, "--project", "."], {}) == ""
    for name in names:
        node(f"out/docs/{name}.js", folder=project)


@pytest.mark.slow
def test_the_benchmark_runs(node) -> None:
    lines = [json.loads(line) for line in node("bench/overhead.mjs", CALLS="2", ROUNDS="1").splitlines()]
    assert [line["name"] for line in lines] == ["me", "send.gift", "products.list"]
