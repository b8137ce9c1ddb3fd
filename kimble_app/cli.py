"""The command ``kimble``. It reads arguments and calls the rooms; nothing is decided here.

Heavy parts are imported inside the commands, so that ``kimble --help`` is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from kimble_env.errors import KimbleError

app = typer.Typer(
    name="kimble",
    help="Kimble, Kombat Kimble and Norske Kimble: judge, train, solve, referee.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
train_app = typer.Typer(help="Train a policy.", no_args_is_help=True)
app.add_typer(train_app, name="train")


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


@app.command()
def evaluate(
    agents: Annotated[
        list[str],
        typer.Argument(
            help="1 to 4 agents; the last one takes the seats that are left. For example: "
            "cautious random, net:runs/run-001/policy, my_agent.py:play"
        ),
    ],
    rules: Annotated[
        str, typer.Option(help=r'rule set, for example kimble or "norske\[own_collision=mover]"')
    ] = "kimble",
    players: Annotated[
        int | None, typer.Option(help="2 to 4; as many as agents if left out")
    ] = None,
    pieces: Annotated[int | None, typer.Option(help="pieces per seat, 1 to 4")] = None,
    games: Annotated[int, typer.Option(help="at least so many games")] = 2000,
    seed: Annotated[int, typer.Option(help="of the dice")] = 1,
    cap: Annotated[int, typer.Option(help="throws after which a stalled game is cut off")] = 5000,
    threads: Annotated[int | None, typer.Option(help="of compiled play; one per core")] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Play a match over all seat rotations on equal dice; print win shares with intervals.

    [bold]Example:[/bold] kimble evaluate cautious random --rules norske --players 4 --games 20000
    """
    from evaluation.cli import evaluate as play

    play(
        agents, rules, players, games, seed, json, pieces=pieces, cap=cap, threads=threads
    )  # prints its table


@app.command()
def solve(
    rules: Annotated[
        str, typer.Option(help=r'rule set, for example "kimble\[pass_allowed=no]"')
    ] = "kimble",
    pieces: Annotated[int | None, typer.Option(help="pieces per seat, 1 to 4")] = None,
    adjacent: Annotated[
        bool, typer.Option("--adjacent", help="neighbours instead of seats opposite each other")
    ] = False,
    tolerance: Annotated[
        float | None, typer.Option(help="largest change in the last sweep; by pieces if left out")
    ] = None,
    threads: Annotated[int, typer.Option(help="sweeps that run at once")] = 2,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Solve the two-player game exactly, keep its table, and print its figures.

    Up to 3 pieces take seconds to minutes; 4 pieces of kimble took 10 minutes on two cores and
    11.5 GB of memory; interrupted, the same command then goes on from its last finished layer.

    [bold]Example:[/bold] kimble solve --rules kimble --pieces 2
    """
    import json as writer

    from agents.exact.report import solve_game

    found = solve_game(
        rules, pieces, adjacent, tolerance=tolerance, threads=threads,
        say=lambda line: typer.echo(line, err=True),
    )  # fmt: skip
    if json:
        typer.echo(writer.dumps(found, indent=1))
        return
    for name, value in found.items():
        typer.echo(f"{name:20}{value}")


@app.command()
def referee(
    match: Annotated[
        Path, typer.Argument(help="file of the match, e.g. final.jsonl; resumed if it exists")
    ],
    rules: Annotated[
        str, typer.Option(help=r"norske and its options, e.g. norske\[late=referee]")
    ] = "norske",
    red: Annotated[str | None, typer.Option(help='two members: "Aino:vichy, Eero:vichy"')] = None,
    blue: Annotated[str | None, typer.Option(help="the same for blue")] = None,
    yellow: Annotated[str | None, typer.Option(help="the same for yellow")] = None,
    green: Annotated[str | None, typer.Option(help="the same for green")] = None,
    players: Annotated[int | None, typer.Option(help="teams, 2 to 4; those named, else 4")] = None,
    starter: Annotated[
        str | None, typer.Option(help="team that begins, as agreed; drawn by lot if left out")
    ] = None,
    cups: Annotated[
        str, typer.Option(help="the cups are marked (at 33 cl) or equal in size")
    ] = "marked",
    seed: Annotated[
        int | None, typer.Option(help="of the lot and of dice the program throws")
    ] = None,
    protocol: Annotated[
        bool, typer.Option("--protocol", help="only write the protocol page of the match")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="the page; beside the match if left out")] = None,
) -> None:
    """Referee a match of Norske Kimble: cups, clocks, members, rulings, and the final protocol.

    Drinks are vichy unless told; the others are beer, cider and long drink.
    Every call is on the disk before it is shown: the match can be resumed after a crash.

    [bold]Example:[/bold] kimble referee final.jsonl --red "Aino:vichy, Eero:vichy" --starter red
    """
    from kimble_app.referee_cli import referee as run

    named = {0: red, 1: blue, 2: yellow, 3: green}
    run(
        match,
        rules=rules,
        players=players,
        teams={seat: text for seat, text in named.items() if text is not None},
        starter=starter,
        cups=cups,
        seed=seed,
        protocol=protocol,
        out=out,
    )


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


train_app.command("ppo")(_ppo_command())


_EXTRAS = {
    "torch": "train",
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
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
