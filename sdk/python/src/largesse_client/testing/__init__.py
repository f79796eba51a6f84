"""A real Largesse for your own tests: an embedded database and the demo's world, gone when the tests are done.

With pytest there is nothing to import, the fixture `largesse_server` comes with the package:

    def test_thanks(largesse_server):
        with largesse_server.client() as largesse:
            assert largesse.me().customer_name == "Acme Ltd"

Anything else takes `running()`. The service itself, the package `largesse`, has to be installed beside the client, or its
command be named.
"""

from largesse_client.testing.server import Server, ServerError, running

__all__ = ["Server", "ServerError", "running"]
