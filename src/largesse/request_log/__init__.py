"""The request log: the requests that customers have sent to the API, for 30 days."""
