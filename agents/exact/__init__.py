"""The two-player game solved: tables of exact values, their solver, the agent ``exact``.

* ``encoding``: positions as numbers; ``transitions``, ``probes``: moves read off the kernel
* ``solver``, ``layers``, ``kernels``: perfect play; ``policies``, ``duels``: given players;
  ``positions``: what is done position by position, and Norske
* ``table``, ``lookup``, ``blockfile``: files and look-ups; ``oracle``: the agent
* ``report``: what ``kimble solve`` prints

Nothing is imported here, so that ``make_agent`` stays quick for those who ask for another agent.
"""

from __future__ import annotations

from kimble_env.opponents import Agent, register_maker
from kimble_env.rules import Rules


def register() -> None:
    """Make the kind ``exact`` known; for ``agents.registry``."""
    register_maker("exact", _make)


def _make(argument: str, rules: Rules) -> Agent:
    from agents.exact.oracle import make_exact

    return make_exact(argument, rules)
