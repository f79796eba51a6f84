"""The HTTP server's connections: how many there may be, how long each may be idle, and which requests are malformed."""
