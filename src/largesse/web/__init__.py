"""What is reached over HTTP: the API, the pages of recipients, and the captured mailbox."""
