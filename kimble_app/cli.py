"""The command ``kimble``: its own options, and how it ends when something is wrong.

The commands are in ``kimble_app/commands``; heavy parts are imported inside them, so that
``kimble --help`` is quick.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kimble_app.commands._lazy import SETTINGS, LazyGroup
from kimble_env.errors import KimbleError

app = typer.Typer(
    name="kimble",
    cls=LazyGroup,
    help="Kimble, Kombat Kimble and Norske Kimble: play, judge, train, solve, serve.",
    epilog="Exit codes: 0 done; 1 a file or a pipe; 2 asked for what cannot be; 130 stopped.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _version(asked: bool) -> None:
    if asked:
        from kimble_env import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command itself."""


_EXTRAS = {
    "torch": "train",
    "cma": "train",
    "stable_baselines3": "train",
    "sb3_contrib": "train",
    "tensorboard": "train",
    "matplotlib": "eval",
    "safetensors": "app",
    "threadpoolctl": "app",
    "pygame": "render",
}
"""Which extra brings a module that a command may miss."""


def main() -> None:
    """Entry point of the command: errors of input end with one clear line and exit code 2."""
    try:
        app()
    except KimbleError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(str(error.name).partition(".")[0])
        remedy = f": pip install 'kimble-rl[{extra}]'" if extra else ""
        typer.echo(f"error: the module {error.name} is not installed{remedy}", err=True)
        sys.exit(2)
    except OSError as error:  # a full disk, a file that cannot be opened; click ends broken pipes
        named = error.filename is not None and error.strerror
        text = f"{error.filename}: {error.strerror}" if named else str(error)
        typer.echo(f"error: {text}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
