"""Layby: a desktop chat studio with a built-in local server."""

__version__ = "0.1.0"
