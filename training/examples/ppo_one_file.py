"""Masked PPO in one file, in the manner of CleanRL, on the vector environment.

    python -m training.examples.ppo_one_file --updates 60

One seat learns against three random players; it prints the share of games won (par 25 %).
"""

import argparse

import gymnasium as gym
import torch
from torch import nn
from torch.distributions import Categorical


def train(updates: int, games: int = 256, steps: int = 32, seed: int = 1) -> list[float]:
    """Learn for so many updates; return the share of games won during each."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # small networks are fastest so
    envs = gym.make_vec(
        "kimble_env:Kimble-v0", games, vectorization_mode="vector_entry_point", rules="kimble",
        opponents=("random",) * 3, seat="rotate", autoreset_mode="SAME_STEP",
    )  # fmt: skip
    size = envs.single_observation_space.shape[0]
    actor, critic = (
        nn.Sequential(nn.Linear(size, 128), nn.Tanh(), nn.Linear(128, outputs))
        for outputs in (int(envs.single_action_space.n), 1)
    )
    both = [*actor.parameters(), *critic.parameters()]
    adam = torch.optim.Adam(both, lr=1e-3, eps=1e-5)
    (seen, info), shares = envs.reset(seed=seed), []

    def choices(observations: torch.Tensor, masks: torch.Tensor) -> Categorical:
        return Categorical(logits=actor(observations).masked_fill(masks == 0, -1e9))

    for update in range(updates):
        rows, finished = [], []
        for _ in range(steps):  # roll out: a reward is all that happens until the next decision
            now, legal = torch.tensor(seen).float(), torch.tensor(info["action_mask"])
            with torch.no_grad():
                policy = choices(now, legal)
                action = policy.sample()
                row = [now, legal, action, policy.log_prob(action), critic(now)[:, 0]]
            seen, reward, ended, cut, info = envs.step(action.numpy())
            rows.append([*row, torch.tensor(reward), torch.tensor(ended | cut)])
            finished += (reward[ended] > 0).tolist()
        columns = map(torch.stack, zip(*rows, strict=True))
        nows, legals, actions, old, values, rewards, dones = columns
        with torch.no_grad():  # generalised advantage estimation, backwards
            after, trace = critic(torch.tensor(seen).float())[:, 0], torch.zeros(games)
            gains = torch.zeros_like(rewards)
            for t in reversed(range(steps)):
                alive = (~dones[t]).float()
                trace = rewards[t] + alive * (after + 0.95 * trace) - values[t]
                gains[t], after = trace, values[t]
        flat = [x.flatten(0, 1) for x in (nows, legals, actions, old, gains, gains + values)]
        for _ in range(4):
            for batch in torch.randperm(games * steps).split(1024):
                now, legal, action, before, gain, target = (x[batch] for x in flat)
                policy = choices(now, legal)
                ratio = (policy.log_prob(action) - before).exp()
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
                loss += 0.5 * (critic(now)[:, 0] - target).square().mean()
                loss -= 0.01 * policy.entropy().mean()
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(both, 0.5)
                adam.step()
        shares.append(sum(finished) / max(len(finished), 1))
        print(f"{(update + 1) * games * steps:9,} decisions, won {100 * shares[-1]:.1f} %")
    envs.close()
    return shares


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=60, help="of the policy (60)")
    train(parser.parse_args().updates)
