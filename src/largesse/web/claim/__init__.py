"""Claim pages: a recipient opens a link, enters the PIN and gets the code, voucher or a form for the address."""
