"""The OpenAPI document, made from the declared operations and their types."""
