"""The HTTP interface: routes and JSON shapes, and nothing else."""

from largesse.api.application import Application
from largesse.api.operation import Operation, Services
from largesse.api.pages import PAGES
from largesse.api.routes import OPERATIONS

__all__ = ["OPERATIONS", "PAGES", "Application", "Operation", "Services"]
