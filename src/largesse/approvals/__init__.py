"""Approvals: which sends of people somebody else approves first, and the requests and decisions."""
