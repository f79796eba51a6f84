"""Webhooks: subscriptions, signed deliveries with retries, and connections to public addresses only."""
