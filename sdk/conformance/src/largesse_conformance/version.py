"""The version of the suite."""

try:
    from largesse_conformance._version import __version__
except ImportError:  # the package runs from a checkout, and was never installed
    __version__ = "0.0.0+unknown"

__all__ = ["__version__"]
