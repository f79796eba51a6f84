"""The service of tests/api, for these tests too."""

import importlib.util
import sys
from pathlib import Path

# Test folders are no packages, so what they share is loaded by its place.
_PATH = Path(__file__).parents[1] / "api" / "conftest.py"
_spec = importlib.util.spec_from_file_location("api_service", _PATH)
assert _spec is not None
assert _spec.loader is not None
api_service = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = api_service
_spec.loader.exec_module(api_service)

problem = api_service.problem
run_on_database = api_service.run_on_database
service = api_service.service
staging = api_service.staging
start_service = api_service.start_service
