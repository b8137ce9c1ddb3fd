"""``kimble train``: reads the settings of a training run.

The commands are made from the settings of their learners, so that each has its sentence in
``--help``. Mistakes are told before torch is imported, which takes seconds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from kimble_app.commands._lazy import is_given
from kimble_env.errors import KimbleError

RESUME = ("resume", "go on from the last checkpoint")
JSON = ("json", "print one JSON object, no progress")
PROFILE = ("profile", "only measure where the time goes, keep nothing")
COUNTS = ("throws", "decisions")
"""Settings that may be written 40M or 250k."""

Run = Callable[..., None]


def _command(run: Run, settings: Any, flags: tuple[tuple[str, str], ...]) -> Callable[..., None]:
    """Return a command: a folder, flags, and an option for every setting of a learner.

    Args:
        run: called with the folder (None: not given), the settings that were given, and the flags.
        settings: their dataclass.
        flags: (name, sentence) of each.
    """
    from training.settings import settings_help
    from training.td_config import read_count

    def command(**options: Any) -> None:
        context, folder = options.pop("context"), options.pop("folder")
        chosen = {name: options.pop(name) for name, _ in flags}
        given = {
            name: read_count(value, f"--{name}") if name in COUNTS else value
            for name, value in options.items()
            if is_given(context, name)
        }
        run(folder, given, **chosen)

    where = typer.Argument(help="where the run is kept; the next runs/run-... if left out")
    parameters = [
        _parameter("context", typer.Context, inspect.Parameter.empty),
        _parameter("folder", Annotated[Path | None, where], None),
    ]
    for name, text in flags:
        parameters.append(
            _parameter(name, Annotated[bool, typer.Option(f"--{name}", help=text)], False)
        )
    for name, default, text in settings_help(settings):
        option = typer.Option(help=text.replace("[", r"\["))  # rich reads brackets as style
        shown = _short(default) if name in COUNTS else default
        parameters.append(_parameter(name, Annotated[type(shown), option], shown))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = run.__doc__
    return command


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _short(number: int) -> str:
    """Write 40000000 as 40M, 1500000 as 1.5M, 2500 as 2.5k."""
    size, letter = (1_000_000, "M") if number >= 1_000_000 else (1_000, "k")
    return f"{number / size:g}{letter}"


def _free_folder(folder: Path | None, resume: bool = False) -> Path:
    """Return the folder given, or the first of runs/run-001, run-002, ... that is not taken."""
    if folder is not None:
        return folder
    if resume:
        raise KimbleError("--resume needs the folder of the run")
    taken = {path.name for path in Path("runs").glob("run-*")}
    return next(
        Path("runs") / f"run-{k:03d}" for k in range(1, 10_000) if f"run-{k:03d}" not in taken
    )


def _tell(folder: Path, spec: str, json: bool, report: str | None) -> None:
    """Print who plays by what was learned, as JSON with the last line of the metrics."""
    import json as writer

    if json:
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        last = writer.loads(lines[-1])
        typer.echo(writer.dumps({"agent": spec, "folder": str(folder), "last": last}))
        return
    typer.echo(f"agent   {spec}")
    if report is not None:
        typer.echo(f"report  {folder / report}")


def _td(
    folder: Path | None, given: dict[str, Any], resume: bool, profile: bool, json: bool
) -> None:
    """Value learning: TD(lambda) over afterstates; writes a run folder.

    The network learns what each seat's chance to win is, from games against itself, its past
    selves and heuristics. Play it as [bold]net:FOLDER[/bold].

    [bold]Example:[/bold] kimble train td --rules norske --players 4 --throws 200M
    """
    from training.checks import check_td, td_to_resume
    from training.td_config import TDConfig

    if profile:
        _profile(TDConfig(**given), json)
        return
    place = _free_folder(folder, resume)
    config = td_to_resume(place, given) if resume else TDConfig(**given)
    if not resume:
        check_td(config, place)

    from training import td as learning

    if resume:
        net = learning.resume(place, progress=not json)
    else:
        net = learning.train(config, place, progress=not json)
    _tell(place, net.spec, json, "report.md")


def _profile(config: Any, json: bool) -> None:
    """Print where the time of value learning goes."""
    import json as writer

    from training.checks import check_td

    check_td(config, None)

    from training.td_profile import profile, table

    found = profile(config)
    typer.echo(writer.dumps(found) if json else table(found))


def _distil(folder: Path | None, given: dict[str, Any], json: bool) -> None:
    """Fit a value network to exact win chances (two players).

    [bold]Example:[/bold] kimble train distil runs/exact --rules kimble --start kimble-2p
    """
    from training.checks import check_distil
    from training.distil_config import DistilConfig

    config, place = DistilConfig(**given), _free_folder(folder)
    check_distil(config, place)

    from training.distil import distil as fit

    net = fit(config, place, progress=not json)
    _tell(place, net.spec, json, None)


def _ppo(folder: Path | None, given: dict[str, Any], resume: bool, json: bool) -> None:
    """Masked PPO against heuristics and past selves; writes a run folder.

    Play what it has learned as [bold]net:FOLDER/policy[/bold].

    [bold]Example:[/bold] kimble train ppo runs/first --rules kombat --decisions 3000000
    """
    from training.checks import check_ppo

    place = _free_folder(folder, resume)
    check_ppo(given, place, resume)

    from training.ppo import train

    agent = train(given, place, resume=resume, progress=not json)
    _tell(place, agent.spec, json, "report.html")


def __getattr__(name: str) -> Any:
    """Make a command when it is wanted: the settings of the learners lie in other files."""
    if name not in ("td", "distil", "ppo"):
        raise AttributeError(name)
    from training.config import PPOConfig
    from training.distil_config import DistilConfig
    from training.td_config import TDConfig

    if name == "td":
        return _command(_td, TDConfig, (RESUME, PROFILE, JSON))
    if name == "distil":
        return _command(_distil, DistilConfig, (JSON,))
    return _command(_ppo, PPOConfig, (RESUME, JSON))
