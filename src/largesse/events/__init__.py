"""Events for webhooks, and the changes of orders that reports read."""
