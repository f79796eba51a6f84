"""Largesse for assistants: a server of the Model Context Protocol, over stdio or streamable HTTP.

    pip install './sdk/python[mcp]'   # in a checkout
    LARGESSE_URL=https://gifts.example LARGESSE_API_KEY=lgs_live_… largesse-mcp

An assistant can read the catalogue and orders, and get quotes. It can place only quoted orders: the server stores the quoted request and
sends exactly that. If it is sent again, it is still the same order.
"""

from largesse_client.mcp.settings import SETTINGS, SettingError, Settings, read_settings

__all__ = ["SETTINGS", "SettingError", "Settings", "read_settings"]
