"""Errors of the exact solver."""

from kimble_env.errors import KimbleError


class TableError(KimbleError):
    """A table or checkpoint file that is damaged, or belongs to another game."""


class UnsettledError(KimbleError):
    """Values that would not settle: a best answer can go round in circles of near-equal passes."""
