"""Largesse, a self-hosted gift ordering service."""

__version__ = "0.1.0"
