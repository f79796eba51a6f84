"""The recipient's pages: opening a gift, claiming it, choosing, and holding the voucher."""

from largesse.web.claim.pages import claim_pages

__all__ = ["claim_pages"]
