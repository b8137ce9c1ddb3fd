"""The move features: worked positions, and against what the kernel then really does."""

from __future__ import annotations

import numpy as np
import pytest

from kimble_env import features as f
from kimble_env import kernel
from kimble_env.features import FEATURE_TABLE, FEATURES
from kimble_env.notation import parse_move, parse_position
from kimble_env.rules import Rules, find_rules

VARIANTS = (
    "kimble",
    "kimble[two_colours=yes]",
    "kombat",
    "kombat[die=popomatic]",
    "norske",
    "norske[own_collision=mover,pieces=3]",
    "norske[board=ludo52,own_collision=stander]",
    "kimble[board=cross40,pass_allowed=no]",
)


def either(*chances: float) -> float:
    """The chance that at least one of independent things happens."""
    none = 1.0
    for chance in chances:
        none *= 1.0 - chance
    return 1.0 - none


BASIC = FEATURES[: FEATURES.index("stake_after") + 1]
"""What the table of worked positions lists; the features that look further have their own."""


def features_of(position: str, move: str) -> dict[str, float]:
    """All features of a move, by name; those that are 0 left out."""
    rules, states = parse_position(position)
    actions = np.array([parse_move(rules, move)], np.int16)
    out = np.empty((1, len(FEATURES)))
    f.features_batch(states, rules.array, actions, out)
    return {name: float(v) for name, v in zip(FEATURES, out[0], strict=True) if v != 0.0}


def weights_of(**weights: float) -> np.ndarray:
    """A weight vector by names; ``passing`` stands for ``pass``."""
    vector = np.zeros(len(FEATURES))
    for name, value in weights.items():
        vector[FEATURES.index("pass" if name == "passing" else name)] = value
    return vector


def new_games(rules: Rules, count: int, seed: int = 1) -> np.ndarray:
    states = kernel.empty_states(count)
    keys = np.empty(count, np.uint64)
    kernel.game_keys(np.uint64(seed), 0, keys)
    plays = np.zeros((count, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    kernel.new_game_batch(states, rules.array, plays, keys, np.empty((0, 2), np.int8))
    return states


def decisions(rules: Rules, count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Positions from random play with a choice to make, and their legal actions as bits."""
    states = new_games(rules, count, seed)
    legal = np.empty(count, np.int64)
    stages = np.array_split(np.arange(count), 16)
    for k, rows in enumerate(stages):  # from the opening to the end game
        part = kernel.take_states(states, rows)
        kernel.play_random_batch(part, rules.array, 12 * k)
        seating = np.full((len(rows), 4), -1, np.int8)
        own = np.empty(len(rows), np.int64)
        none = np.zeros((1, len(FEATURES)))
        f.advance_weighted_batch(part, rules.array, none, seating, 1 << 30, own)
        kernel.put_states(states, rows, part)
        legal[rows] = own
    keep = np.flatnonzero(legal)
    return kernel.take_states(states, keep), legal[keep]


def bits(actions: int) -> list[int]:
    return [a for a in range(64) if int(actions) >> a & 1]


# ------------------------------------------------------------------------------ worked positions


@pytest.mark.parametrize(
    ("position", "move", "expected"),
    [
        ("kimble R10/B-/Y-/G- R 4 1", "pass", {"pass": 1}),
        ("kimble R-/B-/Y-/G- R 6 1", "enter", {"enter": 1, "progress": -1, "pips": 1, "size": 1}),
        (
            "kimble R0/B-/Y-/G- R 5 1",  # from the start, where nobody else may enter
            "0-5",
            {"leave_start": 1, "pips": 5, "size": 1},
        ),
        (
            "kimble R3/B1/Y-/G- R 5 1",  # blue stands on red's 8; behind red's 3 nobody
            "3-8",
            {"progress": 3, "pips": 5, "size": 1, "capture": 1, "capture_progress": 2},
        ),
        (
            "kimble R3/B0/Y-/G- R 4 1",  # onto blue's start, where blue waits: it may enter
            "3-7",
            {
                "progress": 3,
                "pips": 4,
                "size": 1,
                "capture": 1,
                "capture_progress": 1,
                "foreign_start": 1,
                "exposure_after": 1,
                "stake_after": 8,
            },
        ),
        (
            "kimble R10/B-/Y-/G15,16 R 2 1",  # green stands on fields 8 and 9: 1 and 2 behind
            "10-12",
            {
                "progress": 10,
                "pips": 2,
                "size": 1,
                "exposure_before": 2,
                "stake_before": 22,
                "exposure_after": 2,
                "stake_after": 26,
            },
        ),
        (
            "kimble R26/B-/Y-/G- R 4 1",
            "26-30",
            {"progress": 26, "pips": 4, "size": 1, "reach_stretch": 1},
        ),
        (
            "kimble R28/B-/Y-/G- R 3 1",
            "28-31",
            {"on_stretch": 1, "progress": 28, "pips": 3, "size": 1},
        ),
        (
            "kimble R27,29,30,31/B-/Y-/G- R 1 1",
            "27-28",
            {"progress": 27, "pips": 1, "size": 1, "reach_stretch": 1, "finish": 1},
        ),
        # two colours: the partner behind is no danger, the enemy is
        (
            "kimble[two_colours=yes] R10/B-/Y22/G- R 2 1",
            "10-12",
            {"progress": 10, "pips": 2, "size": 1},
        ),
        # Kombat: net +1 in the defender's sector is 21/5/10
        (
            "kombat R3/B1/Y-/G- R 5 1",
            "3-8",
            {
                "progress": 3,
                "pips": 5,
                "size": 1,
                "battle_win": 21 / 36,
                "battle_loss": 10 / 36,
                "battle_swing": 26 / 36 * 2 - 15 / 36 * 4,
            },
        ),
        # Kombat: net +3 on the own start, the attacker has nothing to lose
        (
            "kombat R-/B-/Y-/G7 R 6 1",
            "enter",
            {
                "enter": 1,
                "progress": -1,
                "pips": 1,
                "size": 1,
                "battle_win": 30 / 36,
                "battle_loss": 3 / 36,
                "battle_swing": 33 / 36 * 8,
            },
        ),
        # Norske: batteries
        (
            "norske R0,12/B-/Y-/G- R 6 1",
            "enter",
            {"enter": 1, "progress": -1, "pips": 1, "size": 1, "battery": 2},
        ),
        (
            "norske R0x2,12/B-/Y-/G- R 5 1",
            "0-5",
            {"leave_start": 1, "pips": 10, "size": 2},
        ),
        (
            "norske R9/B4x3,20/Y-/G- R 2 1",  # captures the battery; behind it nobody
            "9-11",
            {"progress": 9, "pips": 2, "size": 1, "capture": 3, "capture_progress": 15},
        ),
        (
            "norske R10/B1x3/Y-/G- R 6 1",  # a battery hits as one
            "10-16",
            {
                "progress": 10,
                "pips": 6,
                "size": 1,
                "exposure_before": 1,
                "stake_before": 11,
            },
        ),
        (
            "norske R0,1/B-/Y-/G17 R 5 1",  # the own start is protected (R27), 4 behind or not
            "0-5",
            {"leave_start": 1, "pips": 5, "size": 1},
        ),
        (
            "norske R5x2/B0/Y-/G- R 2 1",  # onto a protected start (R30): the mover is lost
            "5-7",
            {"progress": 5, "pips": 4, "size": 2, "forced_loss": 2},
        ),
        (
            "norske R29x2,31/B-/Y-/G- R 2 1",  # R31: the smaller is lost
            "29-31",
            {"on_stretch": 1, "progress": 29, "pips": 4, "size": 2, "forced_loss": 1},
        ),
        (
            "norske[own_collision=mover] R29x2,31/B-/Y-/G- R 2 1",
            "29-31",
            {"on_stretch": 1, "progress": 29, "pips": 4, "size": 2, "forced_loss": 2},
        ),
        (
            "norske R29x2,Hx2/B-/Y-/G- R 3 1",
            "29-H",
            {
                "on_stretch": 1,
                "progress": 29,
                "pips": 6,
                "size": 2,
                "reach_home": 2,
                "finish": 1,
            },
        ),
        (
            "norske R27/B-/Y-/G- R 5 1",  # straight from the track into home
            "27-H",
            {"progress": 27, "pips": 5, "size": 1, "reach_stretch": 1, "reach_home": 1},
        ),
    ],
)
def test_worked_positions(position: str, move: str, expected: dict[str, float]) -> None:
    values = features_of(position, move)
    assert {k: v for k, v in values.items() if k in BASIC} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("position", "move", "expected"),
    [
        ("kimble R10/B-/Y-/G- R 4 1", "pass", {}),
        ("kimble R10/B-/Y-/G- R 6 1", "pass", {"pass_six": 1}),
        (
            # Green on g 8 and g 9: 2 and 1 behind red's 10. Faces 1 and 2 hit; so does a 6 and then
            # 1 or 2: 2/6 + 2/36. From 12 on: 4 and 3 behind. Nobody else plays.
            "kimble R10/G15,16 R 2 1",
            "10-12",
            {
                "hit_before": 14 / 36,
                "hit_after": 14 / 36,
                "risk_before": 11 * 14 / 36,
                "risk_after": 13 * 14 / 36,
                "behind_before": 2,
                "behind_after": 2,
            },
        ),
        (
            # Blue waits: a 6 to enter on g 7, then 2 hits red's 9; from 7 itself the 6 alone does.
            "kimble R7,9/B-/Y-/G- R 6 1",
            "9-15",
            {"hit_before": 1 / 36, "risk_before": 10 / 36, "hit_after": 1 / 36}
            | {"risk_after": 16 / 36, "risk_again": 16 / 36},
        ),
        (
            # Blue is 5 behind: 1/6, or a 6 and then 5, or a 6 that enters and then 6. Green is 9
            # behind: a 6 and then 3. One further on (yellow's start) blue hits with the 6 itself,
            # green with a 6 and a 4, and yellow enters with a 6.
            "kimble R13/B1/Y-/G11 R 1 1",
            "13-14",
            {
                "hit_before": either(8 / 36, 1 / 36),
                "risk_before": 14 * either(8 / 36, 1 / 36),
                "hit_after": either(1 / 6, 1 / 36, 1 / 6),
                "risk_after": 15 * either(1 / 6, 1 / 36, 1 / 6),
                "behind_before": 1,
                "behind_after": 1,
                "trail_before": 1,
                "trail_after": 1,
                "enemy_start": 1,
            },
        ),
        (
            # Threats: blue on red's 8 and 12 (its 1 and 5); from 4 both are out of reach of one
            # throw but the first, 4 ahead; from 7 both (1 and 5 ahead).
            "kimble R4/B1,5/Y-/G- R 3 1",
            "4-7",
            {"threats_before": 1, "threats_after": 2, "prey_before": 2 / 6, "prey_after": 8 / 6}
            | {"hit_after": 1 / 6, "risk_after": 8 / 6, "enemy_start": 1},
        ),
        (
            # Captures blue on g 8, 4 behind red's 12 (which is freed), and the leader.
            "kimble R3,12/B1/Y-/G- R 5 1",
            "3-8",
            {"threats_before": 1, "prey_before": 2 / 6, "freed": 1, "relief": 13 / 6, "leader": 1}
            | {"hit_after": 1 / 36, "risk_after": 9 / 36},
        ),
        (
            # Not the leader: yellow has come further, to g 6: 3 ahead of red, then 2 behind.
            "kimble R3,12/B1/Y20/G- R 5 1",
            "3-8",
            {"threats_before": 2, "prey_before": 23 / 6, "freed": 1, "relief": 13 / 6}
            | {"hit_after": either(1 / 36, 7 / 36), "risk_after": 9 * either(1 / 36, 7 / 36)}
            | {"behind_after": 1},
        ),
        # of the fields 28, 29, 30, 31 a throw from 24 reaches three, from 27 all; 30 is taken
        ("kimble R24,30/Y- R 3 1", "24-27", {"gate_before": 2 / 6, "gate_after": 3 / 6}),
        ("kimble R26,30/Y- R 3 1", "26-29", {"gate_before": 3 / 6, "depth": 2}),
        ("norske R26/Y- R 1 1", "26-27", {"gate_before": 5 / 6, "gate_after": 5 / 6}),
        ("norske R30/B-/Y-/G- R 2 1", "30-H", {"depth": 5}),
        ("kimble R0,3/B-/Y-/G- R 5 1", "0-5", {"unblock": 1}),
        ("kimble[pieces=2] R0,3/B-/Y-/G- R 5 1", "0-5", {}),
        # Norske: blue has three throws for a 6 with which it enters, and then hits one further on.
        (
            "norske R9/B-/Y-/G- R 3 1",
            "9-12",
            {
                "hit_before": (1 - (5 / 6) ** 3) / 6,
                "risk_before": 10 * (1 - (5 / 6) ** 3) / 6,
                "hit_after": (1 - (5 / 6) ** 3) / 6,
                "risk_after": 13 * (1 - (5 / 6) ** 3) / 6,
            },
        ),
        ("norske R5x2/B0/Y-/G- R 2 1", "5-7", {"protected": 1}),
        # Kombat: blue, 2 behind, attacks with net +3 in its own sector: 33 of 36 send red home,
        # and as many send blue home when red attacks.
        (
            "kombat R9/B0/Y-/G- R 1 1",
            "9-10",
            {
                "hit_before": (1 / 6 + 1 / 36) * 33 / 36,
                "risk_before": 10 * (1 / 6 + 1 / 36) * 33 / 36,
                "hit_after": (1 / 6 + 1 / 36) * 33 / 36,
                "risk_after": 11 * (1 / 6 + 1 / 36) * 33 / 36,
                "behind_before": 1,
                "behind_after": 1,
            },
        ),
        (
            "kombat R3/B1/Y-/G- R 1 1",
            "3-4",
            {"threats_before": 1, "threats_after": 1}
            | {"prey_before": 26 / 36 * 2 / 6, "prey_after": 26 / 36 * 2 / 6},
        ),
    ],
)
def test_worked_positions_of_what_looks_further(
    position: str, move: str, expected: dict[str, float]
) -> None:
    values = features_of(position, move)
    first, last = FEATURES.index("hit_before"), FEATURES.index("pass_six")
    shown = {k: v for k, v in values.items() if k in FEATURES[first : last + 1]}
    assert shown == pytest.approx(expected)


@pytest.mark.parametrize(
    ("position", "move", "expected"),
    [
        ("kimble R28/Y- R 6 1", "enter", {"enter_alone": 1}),
        ("kimble R3/Y- R 6 1", "enter", {"enter_alone": 0}),
        # blue's start (g 7) with two pieces waiting lies 2 behind red's 9, yellow's (g 14) 1 behind
        # its 15, blue's 8 behind
        ("kimble R9/B3,20/Y- R 6 1", "9-15", {"ambush_before": 2, "ambush_after": 4}),
        # red has made 11 + 4 * 0 fields, green 16 + 17: the lead is -22 of 4 * 32
        ("kimble R10/G15,16 R 2 1", "10-12", {"risk_lead": -22 / 128 * 2 * 14 / 36}),
        ("kimble R4/B1,5 R 3 1", "4-7", {"prey_lead": (5 - 8) / 128 * 6 / 6}),
    ],
)
def test_worked_positions_of_lead_and_ambush(
    position: str, move: str, expected: dict[str, float]
) -> None:
    values = features_of(position, move)
    assert {key: values.get(key, 0) for key in expected} == pytest.approx(expected)


def test_pieces_that_wait_threaten_only_the_start_they_enter_on() -> None:
    assert features_of("kimble R3/B-/Y-/G- R 4 1", "3-7")["exposure_after"] == 1
    assert "exposure_after" not in features_of("kimble R3/B-/Y-/G- R 5 1", "3-8")
    all_out = "kimble R3/B10,11,12,13/Y-/G- R 4 1"
    assert "exposure_after" not in features_of(all_out, "3-7")
    assert "foreign_start" not in features_of(all_out, "3-7")


def test_a_colour_that_does_not_play_threatens_nothing() -> None:
    assert "exposure_after" not in features_of("kimble R3/Y- R 4 1", "3-7")
    assert "foreign_start" not in features_of("kimble R3/Y- R 4 1", "3-7")


def test_an_enemy_about_to_turn_off_the_ring_does_not_hit_beyond() -> None:
    # Blue on its 27 stands on field 6, red on field 7 is one ahead: blue goes to its stretch.
    assert "exposure_before" not in features_of("kimble R8/B27/Y-/G- R 1 1", "8-9")
    # ludo52: field 12, just before blue's start, is not on blue's route.
    assert "exposure_before" not in features_of("kimble[board=ludo52] R12/B50/Y-/G- R 1 1", "12-13")


# ------------------------------------------------------------------------ against the kernel itself


def outcome(state: np.ndarray, rules: Rules, action: int, dice: tuple[int, int]) -> np.ndarray:
    after = kernel.take_states(state)
    kernel.play_batch(after, rules.array, np.array([action], np.int16), np.array([dice], np.int8))
    return after


def events_of(after: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(int(x) for x in e) for e in after["events"][0][: after["event_count"][0]]]


@pytest.mark.parametrize("name", VARIANTS)
def test_features_foretell_what_the_move_does(name: str) -> None:
    rules = find_rules(name)
    states, legal = decisions(rules, 300)
    seen: set[str] = set()
    for i in range(len(states)):
        state, seat = states[i : i + 1], int(states["seat"][i])
        for action in bits(legal[i]):
            out = np.empty((1, len(FEATURES)))
            f.features_batch(state, rules.array, np.array([action], np.int16), out)
            value = dict(zip(FEATURES, out[0], strict=True))
            seen |= {key for key, v in value.items() if v != 0}
            after = outcome(state, rules, action, (6, 1))
            happened = events_of(after)
            if action == rules.board.pass_action:
                six = state["die"][0] == 6
                assert value == {
                    key: float(key == "pass" or (key == "pass_six" and six)) for key in FEATURES
                }
                continue
            captured = sum(n for kind, _, n, _ in happened if kind == kernel.LOST_CAPTURED)
            forced = sum(
                n
                for kind, who, n, _ in happened
                if kind in (kernel.LOST_PROTECTED, kernel.LOST_OWN_COLLISION) and who == seat
            )
            home = sum(n for kind, _, n, _ in happened if kind == kernel.ARRIVED)
            battle = any(kind == kernel.LOST_BATTLE for kind, *_ in happened)
            assert value["capture"] == captured
            assert value["forced_loss"] == forced
            assert value["reach_home"] == home
            assert value["finish"] == (after["places"][0][seat] != state["places"][0][seat])
            assert (value["battle_win"] > 0) == battle
            taken = sum(
                int(b) + 1
                for other in range(4)
                if other != seat
                for b, a in zip(state["pieces"][0][other], after["pieces"][0][other], strict=True)
                if b >= 0 > a
            )
            assert value["capture_progress"] == (0 if battle else taken)
    wanted = {"enter", "leave_start", "exposure_before", "stake_after", "reach_stretch"}
    wanted |= {"battle_swing"} if rules.battles else {"capture", "capture_progress"}
    wanted |= {"battery", "reach_home"} if rules.batteries else set()
    assert wanted <= seen


@pytest.mark.parametrize("name", VARIANTS)
def test_exposure_is_the_number_of_units_that_can_land_there(name: str) -> None:
    rules = find_rules(name)
    states, legal = decisions(rules, 240, seed=3)
    checked = 0
    for i in range(len(states)):
        state = states[i : i + 1]
        seat, die = int(state["seat"][0]), int(state["die"][0])
        for action in bits(legal[i]):
            if action == rules.board.pass_action:
                continue
            out = np.empty((1, len(FEATURES)))
            f.features_batch(state, rules.array, np.array([action], np.int16), out)
            before, after_value = out[0, f.F_BEFORE], out[0, f.F_AFTER]
            assert before == brute_exposure(state, rules, seat, action - 1)
            after = outcome(state, rules, action, (6, 1))  # a battle, if any, is won
            target = 0 if action == 0 else action - 1 + die
            stands = target in after["pieces"][0][seat]
            lost = any(
                who == seat and kind != kernel.ARRIVED for kind, who, _, _ in events_of(after)
            )
            if after["status"][0] == kernel.RUNNING and stands and not lost:
                assert after_value == brute_exposure(after, rules, seat, target)
                checked += before > 0 or after_value > 0
    assert checked > 20


def brute_exposure(state: np.ndarray, rules: Rules, seat: int, progress: int) -> int:
    """Let every other player try every die and count the units that strike the field."""
    if progress < 0:
        return 0
    partner = (seat + 2) % 4 if rules.two_colours else -1
    hitters = set()
    for other in rules.seats:
        if other in (seat, partner) or state["places"][0][other] or state["out"][0][other]:
            continue
        for die in range(1, 7):
            trial = kernel.take_states(state)
            trial["seat"], trial["die"], trial["throws"] = other, die, 1
            trial["face"] = die if rules.die == "popomatic" else 0
            legal = np.empty(1, np.int64)
            kernel.legal_batch(trial, rules.array, legal)
            for action in bits(legal[0]):
                after = outcome(trial, rules, action, (6, 1))
                gone = (after["pieces"][0][seat] == progress).sum()
                if gone < (state["pieces"][0][seat] == progress).sum():
                    hitters.add((other, action))
    return len(hitters)


def striking_faces(
    state: np.ndarray, rules: Rules, seat: int, progress: int, other: int
) -> set[int]:
    """The faces with which ``other`` can send the unit home: every one tried in the kernel."""
    faces = set()
    for die in range(1, 7):
        trial = kernel.take_states(state)
        trial["seat"], trial["die"], trial["throws"] = other, die, 1
        trial["face"] = die if rules.die == "popomatic" else 0
        legal = np.empty(1, np.int64)
        kernel.legal_batch(trial, rules.array, legal)
        before = (state["pieces"][0][seat] == progress).sum()
        for action in bits(legal[0]):
            after = outcome(trial, rules, action, (6, 1))
            if (after["pieces"][0][seat] == progress).sum() < before:
                faces.add(die)
    return faces


def slow_hit(state: np.ndarray, rules: Rules, seat: int, progress: int) -> float:
    """The chance of a hit, by the sentences of ``chance_to_hit``: sets, fractions, no bits."""
    ring, leave = rules.board.ring, rules.board.leave
    shielded = rules.protected_start and progress == 0
    if not 0 <= progress <= leave or shielded:
        return 0.0
    chances = []
    for other in enemies(state, rules, seat):
        t = (progress + rules.board.starts[seat] - rules.board.starts[other]) % ring
        if t > leave:
            continue
        pieces = [int(p) for p in state["pieces"][0][other][: rules.pieces]]
        direct = striking_faces(state, rules, seat, progress, other)
        again = {t - p for p in pieces if p >= 0 and 1 <= t - p <= 6}
        again |= {t - 6 - p for p in pieces if p >= 0 and 1 <= t - 6 - p <= 6}
        again |= {t} if -1 in pieces and 1 <= t <= 6 else set()
        home = rules.board.home if rules.home else 99
        empty = all(not 0 <= p < home for p in pieces)
        six = 1 - (5 / 6) ** (rules.empty_throws if empty else 1)
        chance = len(direct - {6}) / 6 + (six if 6 in direct else six * len(again) / 6)
        if rules.battles:
            chance *= 1 - repelled(state, rules, seat, progress, other)
        chances.append(chance)
    return either(*chances)


def repelled(state: np.ndarray, rules: Rules, seat: int, progress: int, other: int) -> float:
    """The chance that a defender wins the battle for the field it stands on (R18-R20)."""
    starts, ring = rules.board.starts, rules.board.ring
    field = (starts[seat] + progress) % ring
    margin = 2
    for who, sign in ((other, 1), (seat, -1)):
        sector = (starts[(who + 1) % 4] - starts[who]) % ring
        margin += sign * ((field - starts[who]) % ring < sector)
    chance = 0.0
    for attack in range(1, 7):
        shown = int(state["face"][0]) if rules.die == "popomatic" else 0
        for defence in range(1, 7):
            if attack + margin < defence:
                chance += kernel.face_probability(
                    rules.array, shown, attack
                ) * kernel.face_probability(rules.array, attack if shown else 0, defence)
    return chance


def enemies(state: np.ndarray, rules: Rules, seat: int) -> list[int]:
    return [
        other
        for other in rules.seats
        if other != seat and not (rules.two_colours and (other - seat) % 4 == 2)
        if not state["places"][0][other] and not state["out"][0][other]
    ]


def slow_behind(state: np.ndarray, rules: Rules, seat: int, progress: int) -> tuple[int, ...]:
    """Enemy pieces 1 to 6 and 7 to 12 fields behind on the ring, and starts with pieces waiting."""
    ring, leave, starts = rules.board.ring, rules.board.leave, rules.board.starts
    if not 0 <= progress <= leave:
        return 0, 0, 0
    gaps = [
        (starts[seat] + progress - starts[other] - int(p)) % ring
        for other in enemies(state, rules, seat)
        for p in state["pieces"][0][other]
        if 0 <= p <= leave
    ]
    waiting = sum(
        int((state["pieces"][0][other][: rules.pieces] < 0).sum())
        for other in enemies(state, rules, seat)
        if 1 <= (starts[seat] + progress - starts[other]) % ring <= 6
    )
    return sum(1 <= g <= 6 for g in gaps), sum(7 <= g <= 12 for g in gaps), waiting


def slow_targets(
    state: np.ndarray, rules: Rules, seat: int, progress: int
) -> tuple[int, float, set[tuple[int, int]]]:
    """What a unit of ``seat`` could hit in one throw: every face tried in the kernel."""
    prey, fields = set(), 0.0
    if not 0 <= progress <= rules.board.leave:
        return 0, 0.0, prey
    for die in range(1, 7):
        trial = kernel.take_states(state)
        trial["seat"], trial["die"], trial["throws"] = seat, die, 1
        after = outcome(trial, rules, 1 + progress, (6, 1))
        for other in enemies(state, rules, seat):
            gone = [
                int(p)
                for p, q in zip(state["pieces"][0][other], after["pieces"][0][other], strict=True)
                if p >= 0 > q
            ]
            if gone:
                prey.add((other, gone[0]))
                chance = 1.0
                if rules.battles:
                    chance -= repelled(state, rules, other, gone[0], seat)
                fields += chance * sum(p + 1 for p in gone) / 6
    return len(prey), fields, prey


@pytest.mark.parametrize("name", VARIANTS)
def test_what_looks_further_against_slow_models(name: str) -> None:
    rules = find_rules(name)
    states, legal = decisions(rules, 160, seed=8)
    columns = {key: FEATURES.index(key) for key in FEATURES}
    seen = dict.fromkeys(FEATURES, 0)
    for i in range(len(states)):
        state = states[i : i + 1]
        seat, die = int(state["seat"][0]), int(state["die"][0])
        for action in bits(legal[i]):
            if action == rules.board.pass_action:
                continue
            out = np.empty((1, len(FEATURES)))
            f.features_batch(state, rules.array, np.array([action], np.int16), out)
            value = {key: out[0, k] for key, k in columns.items()}
            for key in FEATURES:
                seen[key] += value[key] != 0
            compare_lead(value, state, rules, seat, action)
            size = int((state["pieces"][0][seat] == action - 1).sum())
            compare_stand(value, "before", state, rules, seat, action - 1, size)
            after = outcome(state, rules, action, (6, 1))  # a battle, if any, is won
            target = 0 if action == 0 else action - 1 + die
            lost = any(
                who == seat and kind != kernel.ARRIVED for kind, who, _, _ in events_of(after)
            )
            if after["status"][0] != kernel.RUNNING or lost:
                continue
            taken = [who for kind, who, _, _ in events_of(after) if kind != kernel.ARRIVED]
            if not (taken and rules.empty_throws > 1):  # its throws may be three then
                after["face"] = state["face"]  # the chances are those by the dome as it is
                size = int((after["pieces"][0][seat] == target).sum())
                compare_stand(value, "after", after, rules, seat, target, size)
            if taken:
                compare_capture(value, state, rules, seat, action, target, taken[0])
            else:
                assert value["freed"] == value["relief"] == value["leader"] == 0
    wanted = ["risk_before", "risk_after", "prey_before", "threats_after", "trail_after"]
    wanted += ["risk_lead", "prey_lead", "ambush_after"]
    wanted += ["risk_again", "leader", "enter_alone", "freed"] if name == "kimble" else []
    assert min(seen[key] for key in wanted) > 0, seen


def compare_stand(
    value: dict[str, float],
    when: str,
    state: np.ndarray,
    rules: Rules,
    seat: int,
    progress: int,
    size: int,
) -> None:
    """Compare what the features say of a unit that stands somewhere with the slow models."""
    hit = slow_hit(state, rules, seat, progress)
    assert value[f"hit_{when}"] == pytest.approx(hit)
    assert value[f"risk_{when}"] == pytest.approx(hit * size * (progress + 1))
    behind = tuple(value[f"{key}_{when}"] for key in ("behind", "trail", "ambush"))
    taken = value["capture"] or value["battle_win"]  # who is taken waits only after the move
    count = 2 if when == "after" and taken else 3
    assert behind[:count] == slow_behind(state, rules, seat, progress)[:count]
    units, fields, _ = slow_targets(state, rules, seat, progress)
    assert value[f"threats_{when}"] == units
    assert value[f"prey_{when}"] == pytest.approx(fields)


def compare_lead(
    value: dict[str, float], state: np.ndarray, rules: Rules, seat: int, action: int
) -> None:
    made = (state["pieces"][0][:, : rules.pieces].astype(int) + 1).sum(axis=1)
    lead = (made[seat] - max(made[enemies(state, rules, seat)])) / (
        rules.pieces * (rules.last_progress + 1)
    )
    for key in ("risk", "prey"):
        change = value[f"{key}_after"] - value[f"{key}_before"]
        assert value[f"{key}_lead"] == pytest.approx(lead * change)
    track = [p for p in state["pieces"][0][seat] if 0 <= p <= rules.board.leave]
    assert value["enter_alone"] == (action == 0 and not track)


def compare_capture(
    value: dict[str, float],
    state: np.ndarray,
    rules: Rules,
    seat: int,
    action: int,
    target: int,
    victim: int,
) -> None:
    """Compare what the features say of a capture with the slow models."""
    ring, starts = rules.board.ring, rules.board.starts
    q = (target + starts[seat] - starts[victim]) % ring
    chance = 1.0 - (repelled(state, rules, victim, q, seat) if rules.battles else 0.0)
    mine = [int(p) for p in state["pieces"][0][seat]]
    _, _, prey = slow_targets(state, rules, victim, q)
    freed = [p for p in mine if (seat, p) in prey and p != action - 1]
    assert value["freed"] == pytest.approx(chance * len(freed))
    assert value["relief"] == pytest.approx(chance * sum(p + 1 for p in freed) / 6)
    made = {who: int(state["pieces"][0][who].sum()) for who in enemies(state, rules, seat)}
    assert value["leader"] == pytest.approx(chance * (made[victim] == max(made.values())))


def test_values_stay_in_the_documented_ranges() -> None:
    for name in VARIANTS:
        rules = find_rules(name)
        states, legal = decisions(rules, 200, seed=5)
        for i in range(len(states)):
            for action in bits(legal[i]):
                out = np.empty((1, len(FEATURES)))
                f.features_batch(states[i : i + 1], rules.array, np.array([action], np.int16), out)
                for value, (key, about) in zip(out[0], FEATURE_TABLE.items(), strict=True):
                    if action != rules.board.pass_action or value:
                        assert about.low <= value <= about.high, (key, value)


@pytest.mark.parametrize("name", ["kombat", "kombat[die=popomatic]"])
def test_battle_odds_are_those_of_the_36_throws(name: str) -> None:
    rules, states = parse_position(f"{name} R3/B1/Y-/G- R 5 1")
    result = {"win": 0.0, "loss": 0.0}
    for attack in range(1, 7):
        for defence in range(1, 7):
            after = outcome(states, rules, 4, (attack, defence))
            losers = {who for _, who, _, _ in events_of(after)}
            chance = kernel.face_probability(rules.array, int(states["face"][0]), attack)
            chance *= kernel.face_probability(rules.array, attack if "[" in name else 0, defence)
            result["win"] += chance * (losers == {1})
            result["loss"] += chance * (losers == {0})
    values = features_of(f"{name} R3/B1/Y-/G- R 5 1", "3-8")
    assert values["battle_win"] == pytest.approx(result["win"])
    assert values["battle_loss"] == pytest.approx(result["loss"])


# ---------------------------------------------------------------------------- choosing and playing


@pytest.mark.parametrize("name", ["kimble", "kombat", "norske"])
def test_the_choice_is_the_highest_sum_of_weight_times_feature(name: str) -> None:
    rules = find_rules(name)
    states, legal = decisions(rules, 400)
    rng = np.random.default_rng(4)
    for _ in range(3):
        weights = rng.normal(size=len(FEATURES)) * (rng.random(len(FEATURES)) < 0.6)
        scores = np.empty((len(states), rules.board.actions), np.float32)
        f.score_batch(states, rules.array, weights, scores)
        out = np.empty(len(states), np.int16)
        keys = rng.integers(0, 2**64, len(states), np.uint64)
        f.weighted_action_batch(states, rules.array, weights, keys, out)
        for i in range(len(states)):
            assert sorted(np.flatnonzero(scores[i] > -np.inf)) == bits(legal[i])
            values = np.empty((1, len(FEATURES)))
            for action in bits(legal[i]):
                f.features_batch(
                    states[i : i + 1], rules.array, np.array([action], np.int16), values
                )
                assert scores[i, action] == pytest.approx(weights @ values[0], rel=1e-5, abs=1e-5)
            assert scores[i, out[i]] == scores[i].max()


def test_features_of_weight_zero_are_left_out() -> None:
    rules, states = parse_position("kimble R10/B-/Y-/G15,16 R 2 1")
    out = np.full(len(FEATURES), 7.0)
    f.move_features(states[0], rules.array, 11, weights_of(pips=1), out)
    assert out.tolist() == weights_of(pips=2).tolist()
    f.move_features(states[0], rules.array, rules.board.pass_action, np.ones(len(FEATURES)), out)
    assert out.tolist() == weights_of(passing=1).tolist()


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (f.random_weights(), {4, 9, 15}),  # every move but pass
        (f.random_weights(passing=True), {4, 9, 15, 33}),
        (weights_of(passing=-5, size=1), {4, 9, 15}),  # a tie between three moves
        (weights_of(capture=1, passing=-1), {4}),
        (weights_of(passing=1), {33}),
    ],
)
def test_ties_are_broken_uniformly(weights: np.ndarray, expected: set[int]) -> None:
    # Red can capture blue with 3-8; otherwise the three moves are alike.
    rules, one = parse_position("kimble R3,8,14,31/B0/Y-/G- R 4 1")
    count = 30_000
    states = kernel.take_states(one, np.zeros(count, np.int64))
    keys = np.random.default_rng(1).integers(0, 2**64, count, np.uint64)
    out = np.empty(count, np.int16)
    f.weighted_action_batch(states, rules.array, weights, keys, out)
    actions, counts = np.unique(out, return_counts=True)
    assert set(actions.tolist()) == expected
    share = 1 / len(expected)
    assert np.abs(counts / count - share).max() < 4 * (share * (1 - share) / count) ** 0.5 + 1e-9


def test_random_passes_only_if_nothing_else_is_legal() -> None:
    rules, states = parse_position("kimble R-/B-/Y-/G- R 4 1")
    out = np.empty(1, np.int16)
    f.weighted_action_batch(states, rules.array, f.random_weights(), np.zeros(1, np.uint64), out)
    assert out[0] == rules.board.pass_action


def test_without_a_die_there_is_no_action() -> None:
    rules, states = parse_position("kimble R3/B-/Y-/G- R - 1")
    out = np.empty(1, np.int16)
    f.weighted_action_batch(states, rules.array, f.random_weights(), np.zeros(1, np.uint64), out)
    scores = np.empty((1, rules.board.actions), np.float32)
    f.score_batch(states, rules.array, f.random_weights(), scores)
    assert out[0] == -1
    assert (scores == -np.inf).all()


@pytest.mark.parametrize("name", ["kimble", "kombat", "norske"])
def test_a_playout_is_what_asking_move_by_move_gives(name: str) -> None:
    rules = find_rules(name)
    rng = np.random.default_rng(7)
    table = np.stack(
        [f.random_weights(), rng.normal(size=len(FEATURES)), f.random_weights(passing=True)]
    )
    table[1, f.F_PASS] = -3.0
    seating = np.array([[0, 1, 2, 1]] * 40, np.int8)
    whole = new_games(rules, 40)
    f.play_weighted_batch(whole, rules.array, table, seating, 900)
    steps = new_games(rules, 40)
    legal = np.empty(40, np.int64)
    asked = np.where(seating == 1, -1, seating).astype(np.int8)
    while True:
        f.advance_weighted_batch(steps, rules.array, table, asked, 900, legal)
        rows = np.flatnonzero(legal)
        if len(rows) == 0:
            break
        part = kernel.take_states(steps, rows)
        keys, out = np.empty(len(rows), np.uint64), np.empty(len(rows), np.int16)
        f.decision_keys_batch(part, keys)
        f.weighted_action_batch(part, rules.array, table[1], keys, out)
        kernel.play_batch(part, rules.array, out, np.zeros((len(rows), 2), np.int8))
        kernel.put_states(steps, rows, part)
    assert steps.tobytes() == whole.tobytes()
    assert 0 < (whole["status"] == kernel.WON).mean()


def test_playouts_do_not_depend_on_how_the_batch_is_split() -> None:
    rules = find_rules("norske")
    table = np.stack([f.random_weights(), weights_of(capture=2, enter=1, exposure_after=-1)])
    seating = np.array([[0, 1, 0, 1], [1, 0, 1, 0]] * 30, np.int8)
    whole, parts = new_games(rules, 60), new_games(rules, 60)
    f.play_weighted_batch(whole, rules.array, table, seating, 10_000)
    for rows in (slice(0, 1), slice(1, 23), slice(23, 60)):
        f.play_weighted_batch(parts[rows], rules.array, table, seating[rows], 10_000)
    assert whole.tobytes() == parts.tobytes()


def test_a_playout_stops_after_so_many_throws() -> None:
    rules = find_rules("kimble")
    states = new_games(rules, 8)
    never_moves = weights_of(passing=1)[None, :]
    f.play_weighted_batch(states, rules.array, never_moves, np.zeros((8, 4), np.int8), 77)
    assert (states["plies"] == 77).all()
    assert (states["status"] == kernel.RUNNING).all()


def test_one_decision_has_the_action_of_the_batch() -> None:
    rules = find_rules("kombat")
    states, legal = decisions(rules, 64)
    weights = weights_of(size=1, passing=-2)
    keys, out = np.empty(len(states), np.uint64), np.empty(len(states), np.int16)
    f.decision_keys_batch(states, keys)
    f.weighted_action_batch(states, rules.array, weights, keys, out)
    for i in range(len(states)):
        assert out[i] == f.weighted_action(states[i], rules.array, int(legal[i]), weights, keys[i])
