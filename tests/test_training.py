"""Masked PPO: settings, a short real run, resuming, and the page of a run."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from agents.net_features import feature_count, net_features
from agents.network import PolicyAgent, load_policy
from evaluation import play_match
from kimble_env.errors import KimbleError
from kimble_env.kernel import legal_batch
from kimble_env.observation import mask_batch, observation_size, observe_batch
from kimble_env.rules import Rules
from kimble_env.testing import random_positions
from kimble_env.vector import KimbleVectorEnv, sample_actions
from training import ppo
from training.config import PPOConfig
from training.masked_ppo import BatchedPPO
from training.ppo import lineups, train
from training.report import curve_svg, read_curve, result_rows, table_html, write_page
from training.sb3_adapter import KimbleVecEnv
from training.settings import read_settings, settings_help

SMALL = {
    "envs": 16,
    "steps": 16,
    "batch": 128,
    "epochs": 2,
    "width": 16,
    "heuristics": "random,capture",
    "baselines": "random",
    "evaluate_games": 40,
    "threads": 1,
}


def test_every_setting_has_a_sentence() -> None:
    for name, default, text in settings_help(PPOConfig):
        assert len(text) > 10, name
        assert isinstance(default, int | float | str)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"players": 5}, "players must lie in 2..4, got 5"),
        ({"decisions": 0}, "decisions"),
        ({"past_share": 1.5}, "past_share"),
        ({"envs": True}, "envs"),
        ({"batch": 10_000_000}, "batch must be at most envs x steps"),
        ({"heuristics": " , "}, "heuristics must name at least one agent"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(KimbleError, match=message):
        PPOConfig(**change)  # type: ignore[arg-type]


def test_all_faults_of_settings_are_named_at_once() -> None:
    with pytest.raises(KimbleError, match=r"players.*clip"):
        PPOConfig(players=9, clip=-1.0)


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(KimbleError, match="unknown settings: cup_cost; known: rules"):
        read_settings(PPOConfig, {"cup_cost": 0.1})


def test_cups_cost_and_progress_pays_while_learning(tmp_path: Path) -> None:
    config = PPOConfig(rules="norske", players=2, drink_cost=0.25, shaping=0.5, **{
        **SMALL, "heuristics": "random"})  # fmt: skip
    envs = ppo.Run(config, tmp_path, progress=False).envs
    plain = ppo.Run(dataclasses.replace(config, drink_cost=0.0, shaping=0.0), tmp_path, False).envs
    totals = []
    for one in (envs, plain):
        _, info = one.reset(seed=3)
        paid, drinks = np.zeros(one.num_envs), np.zeros(one.num_envs)
        for step in range(60):
            _, reward, _, _, info = one.step(sample_actions(info["action_mask"], step))
            paid += reward
            drinks += info["drinks"][np.arange(one.num_envs), 0]
        totals.append(paid)
    assert drinks.sum() > 0
    assert totals[0].sum() < totals[1].sum()


def test_an_unknown_opponent_is_named_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(KimbleError, match="nobody"):
        train(
            PPOConfig(heuristics="nobody", **{k: v for k, v in SMALL.items() if k != "heuristics"}),
            tmp_path / "run",
            progress=False,
        )
    assert not (tmp_path / "run").exists()


def test_past_selves_take_their_share_of_the_games() -> None:
    pool, chances = lineups(["a", "b"], ["p", "q", "r"], 0.6)
    assert pool == ["a", "b", "p", "q", "r"]
    assert chances == pytest.approx([0.2, 0.2, 0.2, 0.2, 0.2])
    assert lineups(["a", "b"], [], 0.6) == (["a", "b"], [0.5, 0.5])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run with snapshots, evaluations and a checkpoint."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    config = PPOConfig(decisions=1024, snapshot_every=256, evaluate_every=512, **SMALL)
    train(config, folder, progress=False)
    return folder


def test_a_run_leaves_what_it_promises(finished: Path) -> None:
    config = json.loads((finished / "config.json").read_text())
    assert config["config"]["decisions"] == 1024
    assert set(config["versions"]) > {"python", "torch", "numba", "kimble-rl"}
    rows = read_curve(finished)
    assert [row["decisions"] for row in rows] == [0, 512, 1024]
    for row in rows:
        figures = row["against"]["random"]
        low, high = figures["interval95"]
        assert figures["games"] == 40
        assert low <= figures["win_share"] <= high
    assert len(list((finished / "snapshots").glob("*/policy.safetensors"))) == 3
    assert list((finished / "tensorboard").rglob("events.out.*"))
    assert (finished / "checkpoint.zip").exists()
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "learning_rate" in page


@pytest.fixture(scope="module")
def board_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of a policy that is not told what moves do."""
    folder = tmp_path_factory.mktemp("runs") / "board"
    train(PPOConfig(decisions=256, move_width=0, **SMALL), folder, progress=False)
    return folder


def some_positions(rules: Rules) -> tuple[Any, Any, Any]:
    """Positions with a choice, what their seat to act sees, and its legal actions."""
    positions = random_positions(rules, 64, seed=5)
    observations = np.empty((64, observation_size(rules.board)), np.int8)
    observe_batch(positions, rules.array, np.ascontiguousarray(positions["seat"]), observations)
    actions, masks = np.empty(64, np.int64), np.empty((64, rules.board.actions), np.int8)
    legal_batch(positions, rules.array, actions)
    mask_batch(actions, masks)
    return positions, observations, masks


def shown(agent: PolicyAgent, positions: Any, observations: Any, masks: Any) -> Any:
    """What the policy is shown of positions: the board, the moves, what the value alone is told."""
    told = net_features(positions, agent.rules.array, feature_count(agent.rules))
    seen = np.zeros((len(positions), observations.shape[1] + agent.moves.size), np.float32)
    seen[:, : observations.shape[1]] = observations
    agent.moves.write(positions, masks, seen, observations.shape[1])
    return np.concatenate([seen, told], axis=1)


@pytest.mark.parametrize("which", ["finished", "board_only"])
def test_the_exported_policy_is_the_trained_one(
    which: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(which)
    model = MaskablePPO.load(folder / "checkpoint.zip", device="cpu")
    agent = load_policy(folder / "policy")
    assert bool(agent.moves.names) == (which == "finished")
    positions, seen, masks = some_positions(agent.rules)
    if agent.moves.names:
        seen = shown(agent, positions, seen, masks)
    tensor, _ = model.policy.obs_to_tensor(seen)
    found = model.policy.get_distribution(tensor, action_masks=masks).distribution.probs
    np.testing.assert_allclose(agent.probabilities(positions), found.detach().numpy(), atol=2e-5)


def test_rows_of_legal_moves_give_what_masks_over_all_actions_give(finished: Path) -> None:
    """Loss, entropy and draw over five rows are those of sb3-contrib's masked distribution."""
    model = MaskablePPO.load(finished / "checkpoint.zip", device="cpu")
    agent = load_policy(finished / "policy")
    positions, observations, masks = some_positions(agent.rules)
    seen = torch.as_tensor(shown(agent, positions, observations, masks))
    torch.manual_seed(1)
    for narrower in (masks, masks * (np.arange(masks.shape[1]) != agent.rules.board.pass_action)):
        with torch.no_grad():
            policy = model.policy
            actions, values, logs = policy(seen, action_masks=narrower)
            whole = policy.get_distribution(seen, action_masks=narrower)
            again = policy.evaluate_actions(seen, actions, torch.as_tensor(narrower))
        assert (narrower[np.arange(64), actions] == 1).all()
        torch.testing.assert_close(logs, whole.log_prob(actions))
        torch.testing.assert_close(again, (values, logs, whole.entropy()))
    best = policy(seen, deterministic=True, action_masks=masks)[0]
    assert best.tolist() == agent.act(positions, np.zeros(64, np.uint64)).tolist()


def test_drawn_actions_follow_the_policy(finished: Path) -> None:
    model = MaskablePPO.load(finished / "checkpoint.zip", device="cpu")
    agent = load_policy(finished / "policy")
    positions, observations, masks = some_positions(agent.rules)
    seen = torch.as_tensor(shown(agent, positions, observations, masks)[:1])
    torch.manual_seed(3)
    with torch.no_grad():
        actions = model.policy(seen.repeat(20_000, 1))[0].numpy()
    counts = np.bincount(actions, minlength=masks.shape[1]) / len(actions)
    np.testing.assert_allclose(counts, agent.probabilities(positions[:1])[0], atol=0.015)


class Nothing(BaseCallback):
    """A callback that lets the run go on."""

    def _on_step(self) -> bool:
        return True


def test_the_fast_loop_fills_the_buffer_as_sb3s_own(tmp_path: Path) -> None:
    """Collected with SB3's loop and with ours, the same games give the same books."""
    config = read_settings(PPOConfig, {**SMALL, "rules": "kimble[max_turns=30,pieces=1]"})
    books = []
    for kind in (MaskablePPO, BatchedPPO):
        run = ppo.Run(config, tmp_path / kind.__name__, progress=False)
        model = ppo.make_model(run, KimbleVecEnv(run.envs, run.moves))
        _, callback = model._setup_learn(config.steps, Nothing(), tb_log_name=kind.__name__)
        torch.manual_seed(2)
        buffer = model.rollout_buffer
        assert kind.collect_rollouts(model, model.env, callback, buffer, config.steps)
        books.append(buffer)
        assert model.num_timesteps == config.envs * config.steps
    cut = books[0].rewards != books[1].rewards  # SB3 asks for the value of the last position
    assert cut.mean() < 0.2
    for name in ("observations", "actions", "values", "log_probs", "episode_starts"):
        np.testing.assert_array_equal(getattr(books[0], name), getattr(books[1], name))
    assert books[0].episode_starts[1:].any()


def test_the_trained_policy_plays_in_a_match(finished: Path) -> None:
    result = play_match([f"net:{finished / 'policy'}", "random", "random", "random"], games=40)
    assert result.games == 40
    assert result.truncated == 0


def test_a_run_is_not_overwritten(finished: Path) -> None:
    with pytest.raises(KimbleError, match="holds a run already"):
        train(PPOConfig(decisions=1024, **SMALL), finished, progress=False)


def test_resuming_goes_on_to_the_last_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that dies after its checkpoint is resumed and ends as long as it was meant to be."""
    config = PPOConfig(decisions=1024, snapshot_every=256, evaluate_every=512, **SMALL)
    whole = ppo.save_checkpoint

    def save_and_die(run: ppo.Run, model: Any) -> None:
        whole(run, model)
        if model.num_timesteps >= 512:
            monkeypatch.setattr(ppo, "save_checkpoint", whole)
            raise KeyboardInterrupt

    monkeypatch.setattr(ppo, "save_checkpoint", save_and_die)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", progress=False)
    monkeypatch.setattr(ppo, "save_checkpoint", whole)
    with pytest.raises(KimbleError, match="other settings: seed was 1, now 7"):
        train({"seed": 7}, tmp_path / "run", resume=True, progress=False)
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:  # of after the checkpoint
        file.write(json.dumps({**read_curve(tmp_path / "run")[-1], "decisions": 768}) + "\n")
    train({}, tmp_path / "run", resume=True, progress=False)
    rows = read_curve(tmp_path / "run")
    assert [row["decisions"] for row in rows] == [0, 512, 1024]
    assert rows[0]["seconds"] <= rows[1]["seconds"] <= rows[2]["seconds"]
    train({"decisions": 1280}, tmp_path / "run", resume=True, progress=False)
    assert read_curve(tmp_path / "run")[-1]["decisions"] == 1280
    stored = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    assert stored["decisions"] == 1280
    assert stored["envs"] == SMALL["envs"]


def test_ctrl_c_keeps_what_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Interrupted between two evaluations: policy and checkpoint are those of that moment."""
    shown = ppo.RunCallback._on_rollout_start

    def interrupt(self: ppo.RunCallback) -> None:
        if self.model.num_timesteps >= 512:
            raise KeyboardInterrupt
        shown(self)

    monkeypatch.setattr(ppo.RunCallback, "_on_rollout_start", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(PPOConfig(decisions=2048, **SMALL), tmp_path / "run", progress=False)
    assert "interrupted after 512 decisions" in capsys.readouterr().err
    kept = json.loads((tmp_path / "run" / "policy" / "policy.json").read_text())
    assert kept["decisions"] == 512
    monkeypatch.undo()
    train({}, tmp_path / "run", resume=True, progress=False)
    assert read_curve(tmp_path / "run")[-1]["decisions"] == 2048


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.raises(KimbleError, match="nothing to resume"):
        train(PPOConfig(decisions=1024, **SMALL), tmp_path / "run", resume=True, progress=False)


def test_equal_seeds_train_equal_policies(tmp_path: Path) -> None:
    layers = []
    for k, seed in enumerate((5, 5, 6)):
        config = PPOConfig(decisions=512, seed=seed, evaluate_every=512, **SMALL)
        train(config, tmp_path / str(k), progress=False)
        layers.append((tmp_path / str(k) / "policy" / "policy.safetensors").read_bytes())
    assert layers[0] == layers[1] != layers[2]


def test_learning_improves_the_policy(tmp_path: Path) -> None:
    """A policy that starts by passing whenever it can learns in seconds that this loses."""
    config = PPOConfig(
        rules="kimble[pieces=1]",
        players=2,
        decisions=60_000,
        pass_bias=1.0,
        envs=128,
        steps=32,
        batch=1024,
        learning_rate=3e-3,
        heuristics="random",
        baselines="random",
        past_share=0.0,
        evaluate_every=60_000,
        evaluate_games=4000,
        threads=1,
    )
    train(config, tmp_path / "run", progress=False)
    first, *_, last = (
        row["against"]["random"]["win_share"] for row in read_curve(tmp_path / "run")
    )
    assert first < 0.1
    assert last > 0.4


def test_rewards_hold_losses_and_rows_one_seat_each() -> None:
    """The loser's -1/(n - 1) reaches the learner, and an episode's return is its result."""
    envs = KimbleVecEnv(
        KimbleVectorEnv(
            8, "kimble", players=3, opponents="random", seat="rotate", autoreset_mode="SAME_STEP"
        )
    )
    envs.seed(4)
    envs.reset()
    rng, ends = np.random.default_rng(0), []
    while len(ends) < 30:
        masks = np.stack(envs.env_method("action_masks"))
        envs.step_async(sample_actions(masks, rng, passing=False))
        _, rewards, dones, infos = envs.step_wait()
        assert set(np.unique(rewards)) <= {-0.5, 0.0, 1.0}
        assert not rewards[~dones].any()
        for i in np.flatnonzero(dones):
            ends.append(infos[i]["episode"]["r"])
            assert infos[i]["episode"]["r"] == rewards[i]
            assert infos[i]["terminal_observation"].shape == envs.observation_space.shape
            assert infos[i]["TimeLimit.truncated"] is False
    assert set(ends) == {-0.5, 1.0}


def test_truncated_games_are_told_to_sb3() -> None:
    envs = KimbleVecEnv(
        KimbleVectorEnv(4, "kimble[max_turns=20]", opponents="random", autoreset_mode="SAME_STEP")
    )
    envs.reset()
    told = []
    for _ in range(60):
        masks = np.stack(envs.env_method("action_masks"))
        envs.step_async(masks.argmax(axis=1))
        _, rewards, dones, infos = envs.step_wait()
        told += [infos[i]["TimeLimit.truncated"] for i in np.flatnonzero(dones)]
        assert not rewards.any()
    assert told
    assert all(told)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "opponents must be given"),
        ({"opponents": "random", "autoreset_mode": "NEXT_STEP"}, "SAME_STEP"),
        ({"opponents": "random", "mask_in_observation": True}, "mask_in_observation"),
    ],
)
def test_the_adapter_refuses_other_modes(options: dict[str, object], message: str) -> None:
    with pytest.raises(KimbleError, match=message):
        KimbleVecEnv(KimbleVectorEnv(2, **{"autoreset_mode": "SAME_STEP", **options}))


def test_the_adapter_refuses_what_a_batch_cannot_do() -> None:
    envs = KimbleVecEnv(KimbleVectorEnv(2, opponents="random", autoreset_mode="SAME_STEP"))
    with pytest.raises(KimbleError, match="cannot be set"):
        envs.set_attr("rules", "norske")
    with pytest.raises(AttributeError, match="render_all"):
        envs.env_method("render_all")
    assert envs.has_attr("action_masks")
    assert not envs.has_attr("no_such_thing")


def test_a_page_is_whole_and_self_contained(finished: Path, tmp_path: Path) -> None:
    result = play_match(["capture", "random", "random", "random"], games=40)
    table = table_html("<tables>", ["agent"], [[row[0]] for row in result_rows([result])])
    curve = curve_svg(read_curve(finished), 0.25)
    write_page(tmp_path / "page.html", "A <title>", "intro", [("Curve", curve), ("Table", table)])
    page = (tmp_path / "page.html").read_text()
    assert "A &lt;title&gt;" in page
    assert "&lt;tables&gt;" in page
    assert "capture" in page
    assert page.count("<svg") == 1
    assert "src=" not in page
    assert 'href="http' not in page
