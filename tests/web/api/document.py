"""The OpenAPI document that the application serves, and its parts by name."""

from largesse.web.api.openapi.document import build_document
from largesse.web.api.routes import OPERATIONS

DOCUMENT = build_document(OPERATIONS)
SCHEMAS = DOCUMENT["components"]["schemas"]
BY_ID = {
    operation["operationId"]: operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
}
