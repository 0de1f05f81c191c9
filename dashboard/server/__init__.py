"""The ASGI process."""
