"""Sends that people prepare in the web application: recipients from a form or a file, checked row by row, then placed as one order."""
