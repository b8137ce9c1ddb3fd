"""Makes the environments known to Gymnasium and PettingZoo, without importing either.

``import kimble_env`` must stay as cheap as its rules, so the environments are registered at once
only where Gymnasium or PettingZoo has been loaded already; otherwise as soon as it is. So

    gym.make("kimble_env:Kimble-v0")
    import kimble_env; pettingzoo.make("aec", "kimble/kimble-v0")

work in whatever order things are imported.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

GYMNASIUM_ID = "Kimble-v0"
PETTINGZOO_ID = "kimble/kimble-v0"


def register_gymnasium(gymnasium: ModuleType) -> None:
    """Register ``Kimble-v0``, single and vectorised, once."""
    if GYMNASIUM_ID not in gymnasium.registry:
        gymnasium.register(
            id=GYMNASIUM_ID,
            entry_point="kimble_env.single_seat:KimbleSingleSeat",
            vector_entry_point="kimble_env.vector:KimbleVectorEnv",
        )


def register_pettingzoo(pettingzoo: ModuleType) -> None:
    """Register ``kimble/kimble-v0`` once; PettingZoo has a registry since 1.27."""
    register = getattr(pettingzoo, "register", None)
    if register is not None and PETTINGZOO_ID not in getattr(pettingzoo, "aec_registry", ()):
        register("aec", PETTINGZOO_ID, entry_point="kimble_env.aec:env")


REGISTER: dict[str, Callable[[ModuleType], None]] = {
    "gymnasium": register_gymnasium,
    "pettingzoo": register_pettingzoo,
}


class _WhenImported(MetaPathFinder):
    """Finds nothing itself; calls ``REGISTER[name]`` once the module of that name has loaded."""

    def __init__(self, waiting: set[str]) -> None:
        self.waiting = waiting

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname not in self.waiting:
            return None
        self.waiting.discard(fullname)  # so that the search below does not come back here
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.waiting.add(fullname)
        if spec is None or spec.loader is None:
            return None
        self._call_after(spec, fullname)
        return spec

    def _call_after(self, spec: ModuleSpec, name: str) -> None:
        loader = spec.loader
        assert loader is not None
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self.waiting.discard(name)
            REGISTER[name](module)

        loader.exec_module = exec_module  # type: ignore[method-assign]


def register_all() -> None:
    """Register with what is loaded now, and later with what is loaded later."""
    waiting = set()
    for name, register in REGISTER.items():
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "__version__"):
            register(module)
        else:
            waiting.add(name)
    if waiting:
        sys.meta_path.insert(0, _WhenImported(waiting))
