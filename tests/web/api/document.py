"""The OpenAPI document that the application serves, and its parts by name."""

from __future__ import annotations

from largesse.web.api import OPERATIONS
from largesse.web.api.openapi import build_document

DOCUMENT = build_document(OPERATIONS)
SCHEMAS = DOCUMENT["components"]["schemas"]
BY_ID = {
    operation["operationId"]: operation
    for methods in DOCUMENT["paths"].values()
    for operation in methods.values()
}
