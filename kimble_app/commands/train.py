"""``kimble train``: reads the settings of a training run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from kimble_env.errors import KimbleError


def _parameters(settings: list[tuple[str, Any, str]], extra: list[tuple[str, Any, Any]]) -> Any:
    """Return a signature: the extra parameters (name, annotation, default), then the settings."""
    import inspect

    def parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default
        )

    where = Annotated[
        Path | None, typer.Argument(help="where the run is kept; left out: the next runs/run-...")
    ]
    parameters = [parameter("folder", where, None)]
    parameters += [parameter(*row) for row in extra]
    for name, default, text in settings:
        shown = text.replace("[", r"\[")  # rich would read brackets as style
        option = typer.Option(help=shown, show_default=str(default))
        kind = str if name == "throws" else type(default)
        parameters.append(parameter(name, Annotated[kind | None, option], None))
    return inspect.Signature(parameters)


def _free_folder(folder: Path | None) -> Path:
    """Return the folder given, or the first of runs/run-001, run-002, ... that is not taken."""
    if folder is not None:
        return folder
    taken = {path.name for path in Path("runs").glob("run-*")}
    return next(
        Path("runs") / f"run-{k:03d}" for k in range(1, 10_000) if f"run-{k:03d}" not in taken
    )


def _as_json(folder: Path, spec: str) -> None:
    """Print what came out of a run: the last line of its metrics."""
    import json

    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    typer.echo(json.dumps({"agent": spec, "folder": str(folder), "last": json.loads(lines[-1])}))


def _td_command() -> Callable[..., None]:
    """Make the command ``train td`` from the settings, so that each has its sentence in --help."""
    from training.settings import settings_help
    from training.td_config import TDConfig, read_count

    def td(
        folder: Path | None, resume: bool, profile: bool, as_json: bool, **settings: Any
    ) -> None:
        from training import td as learning

        given = {name: value for name, value in settings.items() if value is not None}
        if "throws" in given:
            given["throws"] = read_count(given["throws"])
        if profile:
            from training.td_profile import profile as measure
            from training.td_profile import table

            found = measure(TDConfig(**given))
            typer.echo(_dumps(found) if as_json else table(found))
            return
        if resume and folder is None:
            raise KimbleError("--resume needs the folder of the run")
        folder = _free_folder(folder)
        if resume:
            net = learning.resume(folder, progress=not as_json)
        else:
            net = learning.train(TDConfig(**given), folder, progress=not as_json)
        if as_json:
            _as_json(folder, net.spec)
        else:
            typer.echo(f"agent   {net.spec}\nreport  {folder / 'report.md'}")

    again = Annotated[bool, typer.Option("--resume", help="go on from the last checkpoint")]
    shares = Annotated[
        bool, typer.Option("--profile", help="only measure where the time goes, keep nothing")
    ]
    machine = Annotated[bool, typer.Option("--json", help="print one JSON object, no progress")]
    extra = [("resume", again, False), ("profile", shares, False), ("as_json", machine, False)]
    td.__signature__ = _parameters(settings_help(TDConfig), extra)  # type: ignore[attr-defined]
    td.__doc__ = """Value learning: TD(lambda) over afterstates; writes a run folder.

    The network learns what each seat's chance to win is, from games against itself, its past
    selves and heuristics. Play it as [bold]net:FOLDER[/bold].

    [bold]Example:[/bold] kimble train td --rules norske --players 4 --throws 200M
    """
    return td


def _dumps(thing: Any) -> str:
    import json

    return json.dumps(thing)


def _distil_command() -> Callable[..., None]:
    """Make the command ``train distil`` from the settings."""
    from training.distil import DistilConfig
    from training.settings import settings_help

    def distil(folder: Path | None, as_json: bool, **settings: Any) -> None:
        from training.distil import distil as fit

        given = {name: value for name, value in settings.items() if value is not None}
        folder = _free_folder(folder)
        net = fit(DistilConfig(**given), folder, progress=not as_json)
        if as_json:
            _as_json(folder, net.spec)
        else:
            typer.echo(f"agent   {net.spec}")

    machine = Annotated[bool, typer.Option("--json", help="print one JSON object, no progress")]
    distil.__signature__ = _parameters(  # type: ignore[attr-defined]
        settings_help(DistilConfig), [("as_json", machine, False)]
    )
    distil.__doc__ = """Fit a value network to exact win chances (two players).

    [bold]Example:[/bold] kimble train distil runs/exact --rules kimble --start kimble-2p
    """
    return distil


def _ppo_command() -> Callable[..., None]:
    """Make the command ``train ppo`` from the settings, so that each has its sentence in --help."""
    import inspect

    from training.config import PPOConfig
    from training.settings import settings_help

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
    for name, default, text in settings_help(PPOConfig):
        shown = text.replace("[", r"\[")  # rich would read brackets as style
        option = typer.Option(help=shown, show_default=str(default))
        kind = Annotated[type(default) | None, option]  # type: ignore[valid-type]
        parameters.append(parameter(name, kind, None))
    ppo.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    ppo.__doc__ = "Masked PPO against heuristics and past selves; writes a run folder."
    return ppo


def __getattr__(name: str) -> Any:
    """Make a command when it is wanted: their settings lie in files that import torch."""
    makers = {"ppo": _ppo_command, "td": _td_command, "distil": _distil_command}
    if name in makers:
        return makers[name]()
    raise AttributeError(name)
