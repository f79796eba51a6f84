"""The service of tests/web/api, for these tests too."""

from tests.web.api.conftest import problem, run_on_database, service, staging, start_service

__all__ = ["problem", "run_on_database", "service", "staging", "start_service"]
