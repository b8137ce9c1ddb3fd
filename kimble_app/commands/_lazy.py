"""A group of commands that imports a command's file only when that command is wanted."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from kimble_app.commands import GROUPS, TABLE, Row

SETTINGS = {"help_option_names": ["-h", "--help"]}


class LazyGroup(TyperGroup):
    """The command ``kimble``, or one of its groups: lists the table, imports when called."""

    prefix = ""
    """Words before the names of this group, with a blank behind them."""

    def __init__(self, **attributes: Any) -> None:
        """Make the group with a stand-in for every command of the table that belongs to it."""
        super().__init__(**attributes)
        for row in TABLE:
            if not row.words.startswith(self.prefix):
                continue
            name, _, inner = row.words.removeprefix(self.prefix).partition(" ")
            if inner and name not in self.commands:
                self.add_command(_group(self.prefix + name), name)
            elif not inner:
                self.add_command(StandIn(row, name), name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command itself where the table only has its stand-in."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, StandIn) else command, rest


class StandIn(TyperCommand):
    """Has the name and the line of help of a command, and can load it."""

    def __init__(self, row: Row, name: str) -> None:
        super().__init__(
            name, help=row.help, short_help=row.help, rich_help_panel=row.panel, callback=None
        )
        self.row = row

    def load(self) -> Any:
        """Import the file of the command and return the command."""
        module, _, function = self.row.where.partition(":")
        loaded = import_module(f"kimble_app.commands.{module}")
        holder = typer.Typer(add_completion=False, rich_markup_mode="rich")
        holder.command(self.name, context_settings=SETTINGS)(getattr(loaded, function))
        return typer.main.get_command(holder)


def _group(words: str) -> LazyGroup:
    """Return the group of the commands that begin with these words."""
    text, panel = GROUPS[words]
    kind = type("LazyGroup", (LazyGroup,), {"prefix": f"{words} "})
    name = words.rpartition(" ")[2]
    return kind(
        name=name, help=text, short_help=text, rich_help_panel=panel, no_args_is_help=True,
        rich_markup_mode="rich", context_settings=SETTINGS,
    )  # fmt: skip


def is_given(context: Any, name: str) -> bool:
    """Say whether an option stands on the command line.

    By the name of its source: some versions of typer have a copy of click, with its own constants.
    """
    source = context.get_parameter_source(name)  # None: there is no such option
    return source is not None and source.name != "DEFAULT"
