"""Webhooks: subscriptions, signed deliveries with retries, and the guard that dials only public addresses."""
