"""`get`, `apply` and `delete`, for a machine without kubectl."""
