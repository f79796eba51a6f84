"""HTTP: the API, the web application, claim pages, documentation and the captured mailbox."""
