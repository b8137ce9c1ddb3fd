"""What is refused before a run begins, and before torch is imported: that alone takes seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.value_net import load_net
from kimble_env.errors import KimbleError
from kimble_env.features import FEATURE_COUNT
from kimble_env.opponents import WeightAgent, make_agent
from kimble_env.rules import Rules
from training.config import PPOConfig
from training.distil_config import DistilConfig
from training.settings import read_settings
from training.td_config import TDConfig

MAY_CHANGE = ("decisions", "minutes", "threads")
"""Settings that a resumed run of PPO may change."""


def vectors(specs: Sequence[str], rules: Rules) -> np.ndarray[Any, Any]:
    """Return the weights of agents that are weight vectors: float64 [W, features].

    Raises:
        KimbleError: one of them is no weight vector.
    """
    rows = []
    for spec in specs:
        agent = make_agent(spec, rules)
        if type(agent) is not WeightAgent:
            raise KimbleError(f"{spec!r} is no weight vector, which compiled games need")
        rows.append(agent.weights)
    return np.array(rows).reshape(-1, FEATURE_COUNT)


def check_free(folder: Path, resume: bool = True) -> None:
    """Refuse a folder that holds a run, or that is none.

    Raises:
        KimbleError: naming the folder.
    """
    if (folder / "config.json").exists():
        rather = "resume it, or choose another folder" if resume else "choose another folder"
        raise KimbleError(f"{folder} holds a run already; {rather}")
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise KimbleError(f"{place} is a file; a run is kept in a folder")


# --------------------------------------------------------------------------------- value learning


def check_td(config: TDConfig, folder: Path | None) -> Rules:
    """Return the rules of a run of value learning that may begin.

    Args:
        config: its settings.
        folder: where it would be kept; None for a measurement that keeps nothing.

    Raises:
        KimbleError: rules, opponents, a network to start from or a folder that cannot be.
    """
    if folder is not None:
        check_free(folder)
    rules = config.found_rules()
    vectors(config.names("heuristics"), rules)
    vectors(config.names("baselines"), rules)
    if config.start:
        load_net(config.start)  # of any rules and number of players on this board
    return rules


def td_to_resume(folder: Path, given: Mapping[str, Any] | None = None) -> TDConfig:
    """Return the settings of the run of value learning in a folder.

    Args:
        folder: of the run.
        given: settings that are named once more; they must be those of the run.

    Raises:
        KimbleError: there is none, or a setting is another.
    """
    path = folder / "config.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))["settings"]
        config = TDConfig(**stored)
    except FileNotFoundError:
        raise KimbleError(f"no run to resume in {folder}: there is no config.json") from None
    except KeyError:
        raise KimbleError(
            f"no run to resume in {folder}: its config.json is not one of kimble train td"
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise KimbleError(f"no run to resume in {folder}: {error}") from error
    refuse_others(folder, stored, given or {})
    return config


def refuse_others(
    folder: Path, stored: Mapping[str, Any], given: Mapping[str, Any],
    may_change: Sequence[str] = (),
) -> None:
    """Refuse settings that a run did not begin with, but those that ``may_change``.

    Raises:
        KimbleError: naming all that differ.
    """
    different = [
        f"{name} was {stored.get(name)!r}, now {value!r}"
        for name, value in given.items()
        if name not in may_change and stored.get(name) != value
    ]
    if different:
        raise KimbleError(f"{folder} was started with other settings: {'; '.join(different)}")


# ----------------------------------------------------------------------------------------- distil


def check_distil(config: DistilConfig, folder: Path) -> Rules:
    """Return the rules of a distillation that may begin.

    Raises:
        KimbleError: rules without exact values, a network or a folder that cannot be used.
    """
    from agents.exact.decisions import set_path

    check_free(folder, resume=False)
    rules = config.found_rules()
    if config.source == "set" and not set_path(rules).exists():
        raise KimbleError(
            f"no committed positions of {rules} with exact values; --source table takes them "
            "from its table (kimble solve makes one)"
        )
    if config.start:
        load_net(config.start, rules)
    return rules


# -------------------------------------------------------------------------------------------- PPO


def check_ppo(given: Mapping[str, Any], folder: Path, resume: bool) -> PPOConfig:
    """Return the settings of a run of PPO that may begin, or go on.

    Args:
        given: settings by name; what is left out is as by default, or as the run began.
        folder: of the run.
        resume: go on with it.

    Raises:
        KimbleError: settings, opponents or a folder that cannot be.
    """
    if not resume:
        check_free(folder)
    settings = _ppo_to_resume(folder, given) if resume else read_settings(PPOConfig, given)
    rules = settings.found_rules()
    for spec in (*settings.names("heuristics"), *settings.names("baselines")):
        make_agent(spec, rules)
    return settings


def _ppo_to_resume(folder: Path, given: Mapping[str, Any]) -> PPOConfig:
    """Return the stored settings, those of ``MAY_CHANGE`` that are given replaced."""
    if not (folder / "checkpoint.zip").exists():
        raise KimbleError(f"nothing to resume in {folder}: no checkpoint.zip")
    stored = json.loads((folder / "config.json").read_text(encoding="utf-8"))["config"]
    refuse_others(folder, stored, given, MAY_CHANGE)
    return read_settings(PPOConfig, {**stored, **given})
