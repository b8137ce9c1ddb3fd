"""The commands of ``kimble``, one file per group; ``TABLE`` says which function is which command.

To add a command write a function in a file of this folder, as typer wants it (annotated arguments,
a docstring that teaches with an example), and add one line to ``TABLE``. The file is imported when
its command runs or is asked for ``--help``, never before: ``kimble --help`` shows the table.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One command: its words, where its function is, and what ``kimble --help`` says of it."""

    words: str
    """``"solve"``, or ``"train ppo"`` for the command ppo of the group train."""
    where: str
    """``"module:function"`` in this package."""
    help: str
    """One line without markup."""
    panel: str | None = None
    """Heading that it stands under; commands of one panel should be neighbours."""


PLAY, JUDGE, LEARN, BUILD = "Play", "Judge", "Learn and solve", "Build on it"
"""The panels of ``kimble --help``."""

GROUPS = {
    "train": ("Train an agent.", LEARN),
}
"""Words that only hold other commands: what is said of them, and their panel."""

TABLE = (
    Row("play", "play:play", "Play at the terminal, you against any agents.", PLAY),
    Row("watch", "watch:watch", "Watch a recorded game, throw by throw.", PLAY),
    Row("referee", "referee:referee", "Referee a match of Norske Kimble.", PLAY),
    Row("rules", "ask:rules", "Explain a rule set and its options in words.", PLAY),
    Row("moves", "ask:moves", "Rank the legal moves of a position.", PLAY),
    Row("agents", "ask:agents", "List the agents that fit a rule set.", PLAY),
    Row("models", "ask:models", "List the networks that come with this version.", PLAY),
    Row("evaluate", "evaluate:evaluate", "Play a match over all seats on equal dice.", JUDGE),
    Row("compare", "judge:compare", "Is A better than B? A verdict and its interval.", JUDGE),
    Row("tournament", "judge:tournament", "Ratings of many agents; resumes when killed.", JUDGE),
    Row("plan", "judge:plan", "How many games does a figure need?", JUDGE),
    Row("analyze", "analyze:analyze", "Judge a recorded game: losses, luck, mistakes.", JUDGE),
    Row("calibrate", "calibrate:calibrate", "Find the temperatures of levels.", JUDGE),
    Row("exact", "exact:exact", "Say exactly how good an agent is: two players.", JUDGE),
    Row("losses", "losses:losses", "Tell what agents lose per decision, in mWP.", JUDGE),
    Row("train ppo", "train:ppo", "Masked PPO against heuristics and past selves."),
    Row("train td", "train:td", "Value learning: a strong network within minutes."),
    Row("train distil", "train:distil", "A network fitted to exact win chances."),
    Row("train evolve", "evolve:evolve", "Weights of a heuristic by evolution (CMA-ES)."),
    Row("export", "export:export", "Ship a trained network: ONNX, card, golden vectors.", LEARN),
    Row("solve", "solve:solve", "Solve the two-player game exactly.", LEARN),
    Row("engine", "engine:engine", "Answer JSON lines: moves for any language.", BUILD),
    Row("bench", "bench:bench", "Measure how fast this machine plays.", BUILD),
    Row("serve", "serve:serve", "Moves and games over HTTP and WebSocket.", BUILD),
    Row("check-dice", "serve:check_dice", "Check the dice of a game of the service.", BUILD),
)
"""Every command, in the order of ``kimble --help``."""
