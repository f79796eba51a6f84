"""What leaves the house: the queue of what is due, webhooks, and mail."""
