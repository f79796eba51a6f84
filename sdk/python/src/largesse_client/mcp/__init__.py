"""Largesse for assistants: a server of the Model Context Protocol, over stdio or streamable HTTP.

    pip install 'largesse-client[mcp]'
    LARGESSE_URL=https://gifts.example LARGESSE_API_KEY=lgs_live_… largesse-mcp

An assistant can look at the catalogue and at orders, and have an order quoted. It can place only what was quoted: what goes with a
quote is stored here, and sent as it was. A send that is repeated is the same order.
"""

from largesse_client.mcp.settings import SETTINGS, SettingError, Settings, read_settings

__all__ = ["SETTINGS", "SettingError", "Settings", "read_settings"]
