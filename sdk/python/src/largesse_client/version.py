"""The release of the client."""

__version__ = "0.1.0"
