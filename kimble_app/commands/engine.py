"""``kimble engine``: moves for programs in any language, over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer


def engine(
    json: Annotated[
        bool, typer.Option("--json", help="allowed and without effect: all of it is JSON")
    ] = False,
) -> None:
    """Answer one JSON object per line, with one per line; ends with its input.

    The fields are those of the service (kimble serve), see docs/front-ends.md.

    [bold]Example:[/bold] echo '{"id": 1, "ask": "move", "position": "kimble R3/B0/Y-/G- R 4 1"}'
    | kimble engine
    """
    from kimble_app.engine import run

    run()
