"""Masked PPO with the parts of TorchRL, on the vector environment.

    python -m training.examples.torchrl_ppo --updates 60      (needs: pip install torchrl)

TorchRL brings the masked distribution, generalised advantage estimation and the clipped loss; the
games come from the batched engine, as tensors. It prints the share of games won (par 25 %).
"""

import argparse

import gymnasium as gym
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE


def train(updates: int, games: int = 256, steps: int = 32, seed: int = 1) -> list[float]:
    """Learn for so many updates; return the share of games won during each."""
    torch.manual_seed(seed)
    envs = gym.make_vec(
        "kimble_env:Kimble-v0", games, vectorization_mode="vector_entry_point", rules="kimble",
        opponents=("random",) * 3, seat="rotate", autoreset_mode="SAME_STEP",
    )  # fmt: skip
    size, count = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    body = [nn.Sequential(nn.Linear(size, 128), nn.Tanh(), nn.Linear(128, n)) for n in (count, 1)]
    actor = ProbabilisticActor(
        TensorDictModule(body[0], ["observation"], ["logits"]),
        in_keys=["logits", "mask"], out_keys=["action"], distribution_class=MaskedCategorical,
        return_log_prob=True,
    )  # fmt: skip
    critic = ValueOperator(body[1], in_keys=["observation"])
    advantage = GAE(gamma=1.0, lmbda=0.95, value_network=critic)
    loss_of = ClipPPOLoss(actor, critic, entropy_coeff=0.01, normalize_advantage=True)
    adam = torch.optim.Adam(loss_of.parameters(), lr=1e-3, eps=1e-5)
    (seen, info), shares = envs.reset(seed=seed), []
    for update in range(updates):
        rows, won = [], []
        for _ in range(steps):
            row = TensorDict(
                {"observation": torch.tensor(seen).float(),
                 "mask": torch.tensor(info["action_mask"]).bool()}, [games],
            )  # fmt: skip
            with torch.no_grad():
                actor(row)
            seen, reward, ended, cut, info = envs.step(row["action"].numpy())
            row["next"] = {  # what follows a finished game is the next game, and is not used
                "observation": torch.tensor(seen).float(),
                "reward": torch.tensor(reward)[:, None],
                "done": (over := torch.tensor(ended | cut)[:, None]),
                "terminated": over,
            }
            rows.append(row)
            won += (reward[ended] > 0).tolist()
        batch = torch.stack(rows, 1)  # [games, steps]: time is the last dimension
        with torch.no_grad():
            advantage(batch)
        flat = batch.reshape(-1)
        for _ in range(4):
            for part in torch.randperm(games * steps).split(1024):
                losses = loss_of(flat[part])
                loss = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(loss_of.parameters(), 0.5)
                adam.step()
        shares.append(sum(won) / max(len(won), 1))
        print(f"{(update + 1) * games * steps:9,} decisions, won {100 * shares[-1]:.1f} %")
    envs.close()
    return shares


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=60)
    train(parser.parse_args().updates)
