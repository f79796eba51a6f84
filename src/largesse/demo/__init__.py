"""`largesse demo`: a demo world on the embedded database, an API key, and requests to paste."""

from largesse.demo.prepare import prepare

__all__ = ["prepare"]
