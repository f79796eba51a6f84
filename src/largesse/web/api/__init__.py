"""The HTTP interface: routes and JSON shapes, and nothing else."""

from largesse.web.api.application import Application
from largesse.web.api.operation import Operation
from largesse.web.api.pages import PAGES
from largesse.web.api.routes import OPERATIONS

__all__ = ["OPERATIONS", "PAGES", "Application", "Operation"]
