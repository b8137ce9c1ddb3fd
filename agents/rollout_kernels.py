"""Compiled part of the rollouts: one throw of many games, and what of its outcome was luck."""

from __future__ import annotations

import numpy as np

from agents.compiling import compiler
from kimble_env.kernel import (
    BATTLE_STREAM,
    THROW_STREAM,
    acting,
    below,
    draw,
    face_probability,
    next_face,
)

fast = compiler("rollouts", __file__, _nrt=True)

_PARTS = 1 << 30


@fast
def follow(nodes, r, rows, chances, children, values, luck, following):
    """Throw in every game, go where the dice lead, and add up what was luck.

    Luck is the value where the game goes less the mean over the faces, and over the outcomes of
    the battle (R18), of what the policy would have made of each.

    Args:
        nodes: STATE [N], running, before a throw; their own streams of dice are drawn from.
        rows, chances, children: what ``search_kernels.grow`` made of them with one action for each
            face.
        values: float64 [M, 4], of the children.
        luck: float64 [N, 4], added to.
        following: STATE [N], overwritten.
    """
    mean = np.empty(4)
    k, count = 0, len(rows)
    for i in range(len(nodes)):
        s = nodes[i]
        seat = acting(s)
        u = draw(s["seed"], THROW_STREAM + seat, s["throw_count"][seat])
        die = next_face(r, int(s["face"]), u)
        battle = draw(s["seed"], BATTLE_STREAM + seat, 2 * int(s["battle_count"][seat]))
        x = below(battle, _PARTS) / _PARTS
        mean[:] = 0.0
        chosen = -1
        while k < count and rows[k] // 6 == i:
            face = rows[k] % 6 + 1
            chance = chances[k] * face_probability(r, int(s["face"]), face)
            for other in range(4):
                mean[other] += chance * values[k, other]
            if face == die and (chosen < 0 or x >= 0.0):
                chosen = k
                x -= chances[k]
            k += 1
        following[i] = children[chosen]
        for other in range(4):
            luck[i, other] += values[chosen, other] - mean[other]
