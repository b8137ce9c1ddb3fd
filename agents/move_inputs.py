"""The features of every legal move as inputs of a policy network.

A network that only sees the board must find out by itself what each move does. With these inputs it
is told: for every action the features of ``kimble_env.features``, each divided by the largest value
it can have, so that all lie in -1..1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kimble_env.features import FEATURE_COUNT, FEATURE_TABLE, FEATURES, features_batch
from kimble_env.kernel import take_states
from kimble_env.rules import Rules


class MoveInputs:
    """Computes the inputs for batches of positions.

    Args:
        rules: of the game.
        names: the features wanted, by default all; their order is that of the columns.

    Attributes:
        shape: (A, K): actions, features.
        names: of the K features.

    Raises:
        KeyError: a feature that does not exist.
    """

    def __init__(self, rules: Rules, names: Sequence[str] = FEATURES) -> None:
        self.rules = rules
        self.names = tuple(names)
        self.columns = np.array([_INDEX[name] for name in self.names])
        spans = [max(abs(FEATURE_TABLE[n].low), abs(FEATURE_TABLE[n].high)) for n in self.names]
        self.scale = (1.0 / np.array(spans)).astype(np.float32)
        self.shape = (rules.board.actions, len(self.names))

    def __call__(
        self, positions: npt.NDArray[np.void], masks: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.float32]:
        """Return the inputs float32 [B, A, K]; rows of actions outside the mask are 0.

        Args:
            positions: STATE [B]; where no die is thrown the mask must be empty.
            masks: int8 [B, A], the legal actions.
        """
        out = np.zeros((len(positions), *self.shape), np.float32)
        games, actions = np.nonzero(masks)
        values = np.empty((len(games), FEATURE_COUNT))
        chosen = actions.astype(np.int16)
        features_batch(take_states(positions, games), self.rules.array, chosen, values)
        out[games, actions] = values[:, self.columns] * self.scale
        return out


_INDEX = {name: k for k, name in enumerate(FEATURES)}
