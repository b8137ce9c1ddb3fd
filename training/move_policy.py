"""A masked policy that is told what each legal move does (see ``agents.policy_kernel``).

The logit of an action is the sum of two parts: what a network that sees the board says of that
action, and the score of a small network, the same for every move, that sees the move's features and
the last hidden units of the board's network. The second learns in minutes what a heuristic knows,
and when it holds; the first learns the rest. The value has a network of its own, which sees the
board and how all pieces threaten each other (``agents.net_features``).

Only the rows of legal moves are computed, five in place of 34 actions: with the masks of
MaskablePPO all other actions have no part in loss, entropy or draw, so the numbers are the same.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

Floats = npt.NDArray[np.float32]
NEVER = -1e8
"""The logit of what is not legal, as in sb3-contrib."""


def mlp(inputs: int, widths: list[int]) -> nn.Sequential:
    """Return layers of ReLU units."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers)


class MovePolicy(MaskableActorCriticPolicy):
    """MaskableActorCriticPolicy over an observation of three parts.

    The parts: what the seat sees, the inputs of the legal moves (``MoveInputs.write``), and what
    the value alone is told.

    Args:
        moves: (M, K), shape of the moves' inputs.
        move_width: hidden units of the network that sees a move.
        told: numbers at the end of the observation that the value alone is told.
    """

    def __init__(
        self, *args: Any, moves: tuple[int, int], move_width: int, told: int, **kwargs: Any
    ) -> None:
        self.moves, self.move_width, self.told = moves, move_width, told
        super().__init__(*args, **kwargs)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "moves": self.moves,
            "move_width": self.move_width,
            "told": self.told,
        }

    def _build(self, lr_schedule: Any) -> None:
        most, features = self.moves
        self.board = self.features_dim - most * (1 + features) - self.told
        pi, vf = (list(self.net_arch[key]) for key in ("pi", "vf"))
        self.policy_net = mlp(self.board, pi)
        self.action_net = nn.Linear(pi[-1], int(self.action_space.n))
        self.feature_net = nn.Linear(features, self.move_width)
        self.context_net = nn.Linear(pi[-1], self.move_width, bias=False)
        self.score_net = nn.Linear(self.move_width, 1)
        self.critic_net = mlp(self.board + self.told, vf)
        self.value_net = nn.Linear(vf[-1], 1)
        gains = {self.action_net: 0.01, self.score_net: 0.01, self.value_net: 1.0}
        for module in self.modules():
            if isinstance(module, nn.Linear):
                module.apply(partial(self.init_weights, gain=gains.get(module, 2.0**0.5)))
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )

    def _move_logits(
        self, seen: torch.Tensor, masks: npt.NDArray[Any] | torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the action codes int64 [B, M] and logits [B, M] of the legal moves.

        Places without a move have code 0 and the logit NEVER, as have moves outside the masks.
        """
        most, features = self.moves
        middle, end = self.board + most, self.board + most * (1 + features)
        codes = seen[:, self.board : middle].long()
        there = codes >= 0
        codes = codes.clamp(min=0)
        if masks is not None:
            allowed = torch.as_tensor(masks).reshape(len(seen), -1)
            there = there & (allowed.gather(1, codes) != 0)
        hidden = self.policy_net(seen[:, : self.board])
        rows = self.feature_net(seen[:, middle:end].view(-1, most, features))
        units = torch.relu(rows + self.context_net(hidden)[:, None, :])
        logits = self.action_net(hidden).gather(1, codes) + self.score_net(units)[..., 0]
        return codes, logits.masked_fill(~there, NEVER)

    def forward(
        self,
        obs: torch.Tensor,
        deterministic: bool = False,
        action_masks: npt.NDArray[Any] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return an action per row, its value, and the logarithm of its probability."""
        codes, logits = self._move_logits(obs, action_masks)
        logs = torch.log_softmax(logits, 1)
        if deterministic:
            chosen = logs.argmax(1, keepdim=True)
        else:  # the greatest of p / e, e exponential, falls on each action with its probability p
            chosen = (logs - torch.empty_like(logs).exponential_().log()).argmax(1, keepdim=True)
        actions = codes.gather(1, chosen)[:, 0]
        return actions, self.predict_values(obs), logs.gather(1, chosen)[:, 0]

    def evaluate_actions(
        self,
        obs: torch.Tensor,
        actions: torch.Tensor,
        action_masks: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return values [B, 1], logarithms of the actions' probabilities [B], entropies [B]."""
        codes, logits = self._move_logits(obs, action_masks)
        logs = torch.log_softmax(logits, 1)
        taken = (codes == actions[:, None]) & (logits > NEVER)
        entropy = -(logs.exp() * logs).sum(1)
        return self.predict_values(obs), (logs * taken).sum(1), entropy

    def get_distribution(
        self, obs: torch.Tensor, action_masks: npt.NDArray[Any] | None = None
    ) -> MaskableDistribution:
        """Return the distribution over all actions."""
        codes, logits = self._move_logits(obs, action_masks)
        rest = torch.full((len(obs), self.action_net.out_features), NEVER)
        whole = rest.scatter_reduce(1, codes, logits, "amax")
        distribution = self.action_dist.proba_distribution(action_logits=whole)
        if action_masks is not None:
            distribution.apply_masking(action_masks)
        return distribution

    def predict_values(self, obs: torch.Tensor) -> torch.Tensor:
        """Return the values [B, 1]."""
        seen, told = obs[:, : self.board], obs[:, obs.shape[1] - self.told :]
        out: torch.Tensor = self.value_net(self.critic_net(torch.cat([seen, told], 1)))
        return out

    def move_weights(self) -> dict[str, Floats]:
        """Return the weights of the network that sees a move, by the names of ``MOVE_WEIGHTS``."""
        parts = {
            "features": self.feature_net.weight,
            "board": self.context_net.weight,
            "bias": self.feature_net.bias,
            "score": self.score_net.weight[0],
            "constant": self.score_net.bias,
        }
        return {name: value.detach().numpy().copy() for name, value in parts.items()}
