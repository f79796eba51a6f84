"""The service of tests/api, for these tests too."""

from tests.web.api.conftest import problem, service, staging, start_service

__all__ = ["problem", "service", "staging", "start_service"]
