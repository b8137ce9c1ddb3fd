"""What this package adds to the specs of ``kimble_env.opponents``: its kinds of agents, levels."""

from __future__ import annotations

from pathlib import Path

from agents.exact import register as register_exact
from agents.heuristics import heuristic_names, make_heuristic
from kimble_env.opponents import Agent, register_alias, register_maker, register_option
from kimble_env.rules import Rules


def register() -> None:
    """Make the kinds of this package known; called by the entry point ``kimble.agents``."""
    register_maker("heuristic", make_heuristic)
    register_maker("net", _make_network)
    register_maker("search", _make_search)
    register_maker("rollouts", _make_rollouts)
    register_option("level", _make_level)
    register_exact()
    for name in heuristic_names():
        register_alias(name, f"heuristic:{name}")


def _make_network(argument: str, rules: Rules) -> Agent:
    """Make ``net``, ``net:NAME`` or ``net:FOLDER``: a value network, or a policy of a folder."""
    from agents.network import make_network  # networks are read only where one is asked for
    from agents.value_net import find_model, make_net_value

    folder = argument.partition(",")[0]
    if not folder or find_model(argument) is not None or not Path(folder).is_dir():
        return make_net_value(argument, rules)
    return make_network(argument, rules)


def _make_search(argument: str, rules: Rules) -> Agent:
    from agents.search import make_search

    return make_search(argument, rules)


def _make_rollouts(argument: str, rules: Rules) -> Agent:
    from agents.rollouts import make_rollout_agent

    return make_rollout_agent(argument, rules)


def _make_level(base: Agent, value: str, rules: Rules) -> Agent:
    from agents.levels import make_level

    return make_level(base, value, rules)
