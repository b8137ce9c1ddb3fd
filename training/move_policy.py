"""A masked policy that is told what each move does (see ``agents.move_inputs``).

The logit of an action is the sum of two networks: one that sees the board and answers for all
actions, and a small one, the same for every action, that sees the features of that one move. The
second learns in minutes what a heuristic knows; the first learns when that is wrong.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn


def mlp(inputs: int, widths: list[int], outputs: int | None = None) -> nn.Sequential:
    """Return layers of tanh units, and a linear one at the end if ``outputs`` is given."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.Tanh()]
        inputs = width
    return nn.Sequential(*layers, *([nn.Linear(inputs, outputs)] if outputs else []))


class BoardAndMoves(nn.Module):
    """The hidden layers: board and moves for the policy, the board alone for the value."""

    def __init__(self, board: int, moves: tuple[int, int], widths: list[int], width: int) -> None:
        super().__init__()
        self.board, self.moves = board, moves
        self.policy_net = mlp(board, widths)
        self.value_net = mlp(board, widths)
        self.move_net = mlp(moves[1], [width], 1)
        self.latent_dim_pi, self.latent_dim_vf = widths[-1] + moves[0], widths[-1]

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what policy and value are made of."""
        return self.forward_actor(inputs), self.forward_critic(inputs)

    def forward_actor(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the hidden units of the board and a score per action, [B, width + A]."""
        moves = inputs[:, self.board :].reshape(-1, *self.moves)
        hidden = self.policy_net(inputs[:, : self.board])
        return torch.cat([hidden, self.move_net(moves)[..., 0]], dim=1)

    def forward_critic(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the hidden units of the value, [B, width]."""
        out: torch.Tensor = self.value_net(inputs[:, : self.board])
        return out


class SumOfLogits(nn.Module):
    """Adds the scores of the moves to what the board says of every action."""

    def __init__(self, hidden: int, actions: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.board = nn.Linear(hidden, actions)

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        """Return the logits [B, A]."""
        out: torch.Tensor = self.board(latent[:, : self.hidden]) + latent[:, self.hidden :]
        return out


class MovePolicy(MaskableActorCriticPolicy):
    """MaskableActorCriticPolicy over an observation with the moves' inputs behind the board.

    Args:
        moves: (A, K), shape of the moves' inputs at the end of the flat observation.
        move_width: hidden units of the network that sees one move.
    """

    def __init__(self, *args: Any, moves: tuple[int, int], move_width: int, **kwargs: Any) -> None:
        self.moves, self.move_width = moves, move_width
        super().__init__(*args, **kwargs)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "moves": self.moves,
            "move_width": self.move_width,
        }

    def _build_mlp_extractor(self) -> None:
        board = self.features_dim - self.moves[0] * self.moves[1]
        widths = list(self.net_arch["pi"])
        self.mlp_extractor = BoardAndMoves(board, self.moves, widths, self.move_width)

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        actions = int(self.action_space.n)
        self.action_net = SumOfLogits(self.mlp_extractor.latent_dim_pi - actions, actions)
        for module, gain in ((self.action_net, 0.01), (self.mlp_extractor.move_net[-1], 0.01)):
            module.apply(partial(self.init_weights, gain=gain))
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )


def move_layers(policy: MovePolicy) -> list[tuple[Any, Any]]:
    """Return the (weight, bias) of the network that sees one move, as numpy arrays."""
    linear = [m for m in policy.mlp_extractor.move_net if isinstance(m, nn.Linear)]
    return [
        (np.array(m.weight.detach().numpy()), np.array(m.bias.detach().numpy())) for m in linear
    ]
