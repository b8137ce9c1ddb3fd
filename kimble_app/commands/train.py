"""``kimble train``: reads the settings of a training run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer


def _ppo_command() -> Callable[..., None]:
    """Make the command ``train ppo`` from the settings, so that each has its sentence in --help."""
    import inspect

    from training.config import settings_help

    def ppo(folder: Path, resume: bool, **settings: Any) -> None:
        from training.ppo import train

        given = {name: value for name, value in settings.items() if value is not None}
        agent = train(given, folder, resume=resume)
        typer.echo(f"policy  {agent.spec}")

    def parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default
        )

    where = Annotated[Path, typer.Argument(help="where the run is kept, e.g. runs/first")]
    again = Annotated[bool, typer.Option("--resume", help="go on from the last checkpoint")]
    parameters = [
        parameter("folder", where, inspect.Parameter.empty),
        parameter("resume", again, False),
    ]
    for name, default, text in settings_help():
        shown = text.replace("[", r"\[")  # rich would read brackets as style
        option = typer.Option(help=shown, show_default=str(default))
        kind = Annotated[type(default) | None, option]  # type: ignore[valid-type]
        parameters.append(parameter(name, kind, None))
    ppo.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    ppo.__doc__ = "Masked PPO against heuristics and past selves; writes a run folder."
    return ppo


ppo = _ppo_command()
