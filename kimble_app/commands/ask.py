"""``kimble rules``, ``agents``, ``models`` and ``moves``: what there is, and what to play."""

from __future__ import annotations

from typing import Annotated

import typer


def rules(
    rules: Annotated[
        str | None,
        typer.Argument(
            help=r'rule set, such as norske or "kombat\[pieces=2]"; all side by side if left out'
        ),
    ] = None,
    players: Annotated[int | None, typer.Option(help="2 to 4")] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Explain a rule set and its options in words.

    [bold]Example:[/bold] kimble rules "norske\\[own_collision=mover,pieces=2]" --players 2
    """
    from kimble_app import show
    from kimble_app.api.answers import answer_rules
    from kimble_env.rules import PRESETS

    if rules is not None:
        answer = answer_rules(rules, players)
        show.print_json(answer) if json else show.print_rules(answer)
        return
    answers = [answer_rules(name, players) for name in PRESETS]
    show.print_json({"rules": answers}) if json else show.print_presets(answers)


def agents(
    rules: Annotated[str, typer.Option(help="rule set that they have to fit")] = "kimble",
    players: Annotated[int | None, typer.Option(help="2 to 4")] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """List the agents that fit a rule set, and how they play.

    [bold]Example:[/bold] kimble agents --rules kimble --players 2
    """
    from kimble_app import show
    from kimble_app.api.answers import answer_agents

    answer = answer_agents(rules, players)
    show.print_json(answer) if json else show.print_agents(answer)


def models(
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """List the networks that come with this version, and what they were made for.

    [bold]Example:[/bold] kimble models --json
    """
    from kimble_app import show
    from kimble_app.api.answers import answer_models

    answer = answer_models()
    show.print_json(answer) if json else show.print_models(answer)


def moves(
    position: Annotated[
        str, typer.Argument(help='a position text, for example "kimble R3,20/B0/Y-/G- R 4 1"')
    ],
    die: Annotated[
        int | None, typer.Option(help="the die thrown, for a position before the throw")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="who ranks them; the best with chances to win if left out")
    ] = None,
    level: Annotated[int | None, typer.Option(help="1 to 10: a weaker one")] = None,
    seed: Annotated[int | None, typer.Option(help="of an agent's own choices")] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Rank the legal moves of a position: chance to win and loss, or the agent's score.

    [bold]Examples:[/bold] kimble moves "norske R3,20/B0/Y-/G- R 4 1";
    kimble moves "kimble\\[pieces=2] R3,20/Y0,8 R - 1" --die 4 --agent exact
    """
    from kimble_app import show
    from kimble_app.api.answers import answer_move
    from kimble_app.api.errors import as_api_error
    from kimble_app.api.schema import MoveRequest
    from kimble_app.ranking import best_judge
    from kimble_env.notation import parse_position

    if agent is None and level is None:
        agent = best_judge(parse_position(position)[0])
    try:
        request = MoveRequest(position=position, die=die, agent=agent, level=level, seed=seed)
    except ValueError as error:  # pydantic's: a number out of range
        raise as_api_error(error) from None
    answer = answer_move(request)
    show.print_json(answer) if json else show.print_moves(answer)
