"""Largesse, a self-hosted gift ordering service.

A room is a package or module here. docs/architecture.md lists them, says which may import which, and follows one order
through them. `main` builds the services and the worker. `installation` opens what they need: database, vault and chains.
"""

try:
    from largesse._version import __version__
except ImportError:  # run from a checkout that was never installed
    __version__ = "0.0.0+unknown"

__all__ = ["__version__"]
