"""Builds the suite with flit_core. It takes its version from the commit, as the other packages do.

A source archive is in no repository, and keeps the version that it was built with.
"""

from __future__ import annotations

import sys
from pathlib import Path

_SHARED = Path(__file__).resolve().parents[2] / "python/release"

if (_SHARED / "largesse_build.py").is_file():
    sys.path.append(str(_SHARED))
    from largesse_build import *  # noqa: F403 - the hooks of a build
else:
    from flit_core.buildapi import *  # noqa: F403 - as above
