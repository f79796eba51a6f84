"""The documentation of the running service, made from the same declarations as the API."""
