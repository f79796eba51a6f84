"""Drafts: sends that people prepare in the web application. Recipients come from a form or a file, are checked, and become one order."""
