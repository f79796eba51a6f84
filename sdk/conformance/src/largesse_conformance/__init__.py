"""Checks a deployment of Largesse against its contract, from outside: `largesse-conformance URL`."""

from largesse_conformance.version import __version__

__all__ = ["__version__"]
