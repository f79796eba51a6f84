"""`largesse verify`: does what is stored agree with itself? Each check says in a sentence what must hold."""

from largesse.verify.audit import CHECKS, audit
from largesse.verify.check import Check, Finding, Report

__all__ = ["CHECKS", "Check", "Finding", "Report", "audit"]
