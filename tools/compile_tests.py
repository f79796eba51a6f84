"""Compiles the modules of the tests, as pytest and the import of helpers would, in all processors at once.

On a fresh clone each of pytest's processes would otherwise do all of it, at the same time as the others.
"""

import os
import py_compile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc, _rewrite_test, _write_pyc_fp, get_cache_dir
from _pytest.config import get_config

ROOTS = (Path("tests"), Path("sdk/python/tests"))


def main() -> None:
    modules = [path.resolve() for root in ROOTS for path in root.rglob("*.py") if "node_modules" not in path.parts]
    # The longest first: none is left to one processor at the end.
    modules.sort(key=lambda path: path.stat().st_size, reverse=True)
    with ProcessPoolExecutor(initializer=get_config) as processes:
        list(processes.map(compile_module, modules, chunksize=8))


def compile_module(path: Path) -> None:
    """Leaves what it is compiled to where pytest, or the import of a module that is no test, looks for it."""
    if not path.name.startswith("test_") and path.name != "conftest.py":
        py_compile.compile(str(path))
        return
    compiled = get_cache_dir(path) / f"{path.stem}{PYC_TAIL}"
    if _read_pyc(path, compiled) is not None:
        return
    compiled.parent.mkdir(exist_ok=True)
    source_hash, code = _rewrite_test(path, get_config())
    unfinished = compiled.with_name(f"{compiled.name}.{os.getpid()}")
    with unfinished.open("wb") as file:
        _write_pyc_fp(file, source_hash, code)
    unfinished.replace(compiled)


if __name__ == "__main__":
    main()
