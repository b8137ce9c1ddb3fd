"""Loss per decision: against exact values, evaluators and public sets; and how sets are made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from agents.evaluators import exact_move_values, make_evaluator
from agents.exact.decisions import read_decisions
from evaluation.losses import (
    FOLDER,
    PHASES,
    board_bytes,
    decision_losses,
    digest,
    pack,
    phases,
    public_losses,
    public_names,
    read_public,
    reference_values,
    sample_decisions,
    unpack,
)
from evaluation.public_sets import Rolled, roll_out, weigh
from kimble_env.errors import AgentError, KimbleError, PositionError
from kimble_env.kernel import faults_batch, legal_batch, take_states
from kimble_env.notation import parse_position
from kimble_env.rules import find_rules

NAMES = tuple(f"{r}-{p}p" for r in ("kimble", "kombat", "norske") for p in (2, 3, 4))


# ------------------------------------------------------------------------------------ the losses


def test_the_perfect_player_loses_nothing_and_random_a_lot() -> None:
    rules = find_rules("kimble[pieces=2]").replace(players=2)
    positions = sample_decisions(rules, 300)
    perfect = decision_losses("exact", positions, rules, "exact")
    assert perfect.mean < 2e-5
    assert perfect.best == 1.0
    random = decision_losses("random", positions, rules, "exact", repeats=4)
    assert 0.004 < random.mean < 0.05
    assert random.error > 0.0
    assert random.quantile(0.5) <= random.quantile(0.9) <= random.quantile(1.0)
    table = decision_losses("random", positions, rules, "exact", repeats=1)
    assert table.losses.max() <= random.losses.max() + 0.2
    assert random.reference.startswith("exact (")


def test_a_loss_is_the_best_move_less_the_move_played() -> None:
    rules, states = parse_position("kimble R3,20/B10/Y24 R 4 1")
    rules = rules.replace(players=3)
    values = exact_move_values(make_evaluator("linear", rules), states, rules)[0, :, 0]
    legal = [4, 21, rules.board.pass_action]
    assert set(np.flatnonzero(values)) == set(legal)
    for action in legal:
        found = decision_losses(lambda game, a=action: a, states, rules, "linear")
        assert found.losses[0] == pytest.approx(values.max() - values[action])
        assert found.passes[0] == (action == rules.board.pass_action)


def test_only_decisions_with_a_choice_count() -> None:
    _, forced = parse_position("norske R3/B20 R 4 1")
    rules, free = parse_position("norske R3,9/B20 R 4 1")
    both = np.concatenate([forced, free])
    assert len(decision_losses("random", both, rules, "linear").losses) == 1
    with pytest.raises(KimbleError, match="no position leaves a choice"):
        decision_losses("random", forced, rules, "linear")


def test_phases_go_by_who_is_ahead() -> None:
    rules, states = parse_position("kimble R3/B20 R 4 1")
    _, later = parse_position("kimble R31,30,29,1/B20 R 4 1")
    _, middle = parse_position("kimble R31,20/B20 R 4 1")
    found = [PHASES[phases(s, rules)[0]] for s in (states, middle, later)]
    assert found == ["opening", "middle", "end"]


def test_a_reference_may_be_an_agent_with_win_chances() -> None:
    rules = find_rules("kombat").replace(players=3)
    positions = sample_decisions(rules, 20)
    name, values = reference_values("search:depth=1,eval=linear,pass_cost=0", positions, rules)
    _, linear = reference_values("linear", positions, rules)
    assert name.startswith("search:")
    assert np.allclose(values, linear, atol=1e-6, equal_nan=True)
    with pytest.raises(AgentError, match="has no win chances"):
        reference_values("cautious", positions, rules)
    with pytest.raises(AgentError, match="unknown evaluator 'magic'"):
        reference_values("magic", positions, rules)


def test_sampled_decisions_are_what_they_say() -> None:
    rules = find_rules("norske").replace(players=3)
    positions = sample_decisions(rules, 150, seed=2)
    assert len(positions) == 150
    assert not positions["seed"].any()
    legal = np.empty(150, np.int64)
    legal_batch(positions, rules.array, legal)
    assert (legal & (legal - 1) != 0).all()
    assert set(phases(positions, rules)) == {0, 1, 2}
    assert board_bytes(positions) == board_bytes(sample_decisions(rules, 150, seed=2))
    assert board_bytes(positions) != board_bytes(sample_decisions(rules, 150, seed=3))
    with pytest.raises(KimbleError, match="count must be a whole number"):
        sample_decisions(rules, 0)


# ---------------------------------------------------------------------------------- the public sets


@pytest.mark.parametrize("name", NAMES)
def test_the_public_set_is_whole_and_its_positions_can_be(name: str) -> None:
    spec, _, players = name.partition("-")
    rules = find_rules(spec).replace(players=int(players[0]))
    public = read_public(rules)
    assert len(public.positions) >= 2000
    assert public.header["command"].startswith("python -m evaluation.public_sets --rules")
    faults = np.empty(len(public.positions), np.int64)
    faults_batch(public.positions, rules.array, faults)
    assert not faults.any()
    legal = np.empty(len(public.positions), np.int64)
    legal_batch(public.positions, rules.array, legal)
    mask = legal[:, None] >> np.arange(rules.board.actions) & 1 != 0
    for numbers in (public.values, public.errors):
        assert (np.isfinite(numbers) == mask).all()
    assert (mask.sum(axis=1) >= 2).all()
    known = public.values[mask]
    assert (known > -0.1).all()
    assert (known < 1.1).all()
    exact = public.header["reference"] == "exact"
    assert exact == (name in ("kimble-2p", "kombat-2p"))
    assert (public.errors[mask].max() == 0.0) == exact
    losses = [public_losses(a, rules).mean for a in ("mixed", "random")]
    assert losses[0] < losses[1], "it tells a player from no player"


def test_the_sets_of_two_players_hold_the_exact_values() -> None:
    rules = find_rules("kombat").replace(players=2)
    public, exact = read_public(rules), read_decisions(rules)
    rows = np.flatnonzero(np.isfinite(exact.win).sum(axis=1) > 1)[: len(public.positions)]
    assert board_bytes(public.positions) == board_bytes(take_states(exact.positions, rows))
    assert np.allclose(public.values, exact.win[rows], atol=1e-5, equal_nan=True)


def test_a_public_set_judges_its_own_positions_only() -> None:
    rules = find_rules("kombat").replace(players=2)
    public = read_public(rules)
    with pytest.raises(KimbleError, match="judges its own positions only"):
        decision_losses("random", public.positions[:5], rules, public)
    with pytest.raises(KimbleError, match="is for kombat, not kimble"):
        decision_losses("random", public.positions, find_rules("kimble"), public)


def test_damaged_and_missing_sets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KimbleError, match=r"no public set 'kimble-2p'; there are: .*norske-4p"):
        read_public(find_rules("kimble").replace(players=2), tmp_path / "kimble-2p.npz")
    rules = find_rules("kimble").replace(players=2)
    data = (FOLDER / "kimble-2p.npz").read_bytes()
    for wrong in (data[: len(data) // 2], b"nothing"):
        path = tmp_path / "set.npz"
        path.write_bytes(wrong)
        with pytest.raises(KimbleError, match="no public set, or damaged"):
            read_public(rules, path)
    with np.load(FOLDER / "kimble-2p.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["values"][0] += 0.25
    np.savez(path, **arrays)
    with pytest.raises(KimbleError, match="the checksum does not fit"):
        read_public(rules, path)
    with pytest.raises(KimbleError, match="made for kimble"):
        read_public(find_rules("kombat").replace(players=2), FOLDER / "kimble-2p.npz")
    assert set(NAMES) <= set(public_names())


def test_packing_keeps_everything() -> None:
    rules = find_rules("norske").replace(players=4)
    positions = sample_decisions(rules, 30)
    _, values = reference_values("linear", positions, rules)
    arrays = pack(positions, values, values / 8.0, rules)
    assert board_bytes(unpack(arrays, rules)) == board_bytes(positions)
    assert len(arrays["values"]) == np.isfinite(values).sum()
    before = digest(arrays)
    arrays["die"] = arrays["die"].copy()
    arrays["die"][0] = 7 - arrays["die"][0]
    assert digest(arrays) != before


# ---------------------------------------------------------------------------- making estimated sets


def test_rollouts_agree_with_the_value_they_start_from() -> None:
    """No throws: the value itself. Some throws: its mean over many dice is near a deep search."""
    rules = find_rules("kombat").replace(players=3)
    positions = sample_decisions(rules, 12)
    legal = np.empty(12, np.int64)
    legal_batch(positions, rules.array, legal)
    mask = legal[:, None] >> np.arange(rules.board.actions) & 1 != 0
    value = make_evaluator("linear", rules)
    _, static = reference_values("linear", positions, rules)
    none = roll_out(positions, mask, rules, value, 2, 0, 1)  # type: ignore[arg-type]
    assert np.allclose(none.mean(axis=2)[mask], static[mask])
    search = "search:depth=2,eval=linear,budget=0,pass_cost=0"
    _, deeper = reference_values(search, positions, rules)
    one = roll_out(positions, mask, rules, value, 8, 1, 1)  # type: ignore[arg-type]
    # A result less luck is the value after the throw less its deviation: the search, dice or none.
    assert np.allclose(one.mean(axis=2)[mask], deeper[mask], atol=1e-6)
    assert one.std(axis=2).max() < 1e-9
    chosen = mask & (np.cumsum(mask, axis=1) == 1)
    some = roll_out(positions, chosen, rules, value, 4, 5, 2)  # type: ignore[arg-type]
    every = roll_out(positions, mask, rules, value, 4, 5, 1)  # type: ignore[arg-type]
    assert np.allclose(some[chosen], every[chosen])
    assert not some[~chosen].any()


def test_search_and_rollouts_are_weighed_by_their_precision() -> None:
    generator = np.random.default_rng(3)
    shape, nan = (4000, 3), np.nan
    truth = generator.normal(0.4, 0.05, shape)
    search = truth + generator.normal(0.0, 0.006, shape)
    noise = generator.choice([0.003, 0.012], shape)
    rolled = truth + generator.normal(0.0, 1.0, shape) * noise
    first = search.argmax(axis=1)
    rows = np.arange(len(truth))
    apart = np.sqrt(noise**2 + noise[rows, first][:, None] ** 2)
    rolled[:, 2] = np.where(first == 2, rolled[:, 2], nan)  # not rolled out
    values, errors, notes = weigh(Rolled(search, rolled, apart, noise[rows, first]))
    off = values - values[rows, first][:, None] - truth + truth[rows, first][:, None]
    said = np.isfinite(rolled)
    said[rows, first] = False
    assert (errors[rows, first] == 0.0).all()
    plain = rolled - rolled[rows, first][:, None] - truth + truth[rows, first][:, None]
    assert np.mean(off[said] ** 2) < 0.8 * np.mean(plain[said] ** 2)
    assert np.std(off[said] / errors[said]) == pytest.approx(1.0, abs=0.15)
    assert notes["search_spread_mwp"] == pytest.approx(8.5, abs=1.0)  # two moves of 6 each


# ------------------------------------------------------------------------------------- the command


def test_the_command_prints_a_table_and_json() -> None:
    from kimble_app.cli import app

    line = ["losses", "cautious", "random", "--rules", "kombat", "--players", "2"]
    shown = CliRunner().invoke(app, line)
    assert shown.exit_code == 0, shown.output
    assert "4000 decisions, judged by public:kombat-2p" in shown.output
    assert shown.output.index("cautious") < shown.output.index("random ")
    data = json.loads(CliRunner().invoke(app, [*line, "--json"]).output)
    assert data["unit"] == "mWP"
    rows = {row["agent"]: row for row in data["agents"]}
    assert 1.0 < rows["cautious"]["mean"] < 4.0 < rows["random"]["mean"] < 9.0
    assert set(rows["random"]["phases"]) == set(PHASES)
    other = CliRunner().invoke(
        app, ["losses", "mixed", "--reference", "linear", "--positions", "50", "--players", "3"]
    )
    assert "50 decisions, judged by linear:kimble-3p" in other.output


def test_bad_input_is_refused() -> None:
    rules = find_rules("kimble").replace(players=2)
    positions = sample_decisions(rules, 5)
    with pytest.raises(KimbleError, match="repeats must be a whole number"):
        decision_losses("random", positions, rules, "linear", repeats=0)
    with pytest.raises(PositionError, match="must be an array STATE"):
        decision_losses("random", np.zeros(3), rules, "linear")
    with pytest.raises(AgentError, match="unknown agent"):
        decision_losses("nobody", positions, rules, "linear")
    with pytest.raises(KimbleError, match="made for kimble"):
        public_losses("random", "kimble[two_colours=yes]")


def test_the_command_names_what_cannot_be() -> None:
    from evaluation.losses_cli import losses

    for name, options in (
        ("positions", {"positions": 0}),
        ("repeats", {"repeats": 0}),
        ("seed", {"seed": -3, "reference": "linear"}),
    ):
        with pytest.raises(KimbleError, match=f"{name} must be a whole number"):
            losses(["cautious"], players=2, **options)  # type: ignore[arg-type]
    with pytest.raises(KimbleError, match=r"not for kimble\[pieces=2\].*--reference exact"):
        losses(["cautious"], "kimble[pieces=2]", 2)
