"""Approvals: the rules by which a send needs another person's approval, and the requests and decisions."""
