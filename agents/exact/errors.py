"""Errors of the exact solver."""

from kimble_env.errors import KimbleError


class TableError(KimbleError):
    """A table or checkpoint file that is damaged, or belongs to another game."""
