"""A real Largesse for your own tests, with an embedded database and the data of the demo. It is deleted after the tests.

With pytest you need no import, as the package has the fixture `largesse_server`:

    def test_thanks(largesse_server):
        with largesse_server.client() as largesse:
            assert largesse.me().customer_name == "Acme Ltd"

Without pytest, use `running()`. The service, the package `largesse`, must be installed in the same environment, or you pass its command.
"""

from largesse_client.testing.server import Server, ServerError, running

__all__ = ["Server", "ServerError", "running"]
