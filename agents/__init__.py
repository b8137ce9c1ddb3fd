"""Who decides: heuristics and networks, each behind a short spec.

>>> from agents import make_agent
>>> make_agent("cautious", "norske").spec
'cautious'

``agents.registry.register`` makes the kinds of this package known to ``kimble_env``; the entry
point ``kimble.agents`` calls it when the first unknown spec is met.
"""

from kimble_env.opponents import (
    Agent,
    WeightAgent,
    known_specs,
    make_agent,
    register_alias,
    register_maker,
)

__all__ = [
    "Agent",
    "WeightAgent",
    "known_specs",
    "make_agent",
    "register_alias",
    "register_maker",
]
