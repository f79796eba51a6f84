"""`contacts import` with files that are none: one line that names the file."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "people.csv: It is empty."),
        (b"\0" * (4 * 1024 * 1024 + 1), "people.csv: The file has more than 4,194,304 bytes."),
        (b"name\nLin\n", "people.csv: no column has e-mail addresses"),
        (None, "File 'people.csv' does not exist."),
    ],
    ids=["empty", "huge", "without addresses", "missing"],
)
def test_a_file_without_contacts_is_named(
    run: Run, loaded: dict[str, Any], tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "people.csv").write_bytes(content)
    assert_refused(run("contacts", "import", "people.csv", "--customer", "acme"), said)
