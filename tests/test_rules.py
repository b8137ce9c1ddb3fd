"""Rule sets: every option acts, every fault is named, texts and hashes say what is played.

The worked cases are in ``test_worked_cases.py``, boards in ``test_board.py``.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kimble_env import PRESETS, Board, Game, KimbleError, Rules, RulesError, find_rules
from kimble_env.rules import DEFAULT_SEATS, OPTIONS

SOME_VALUE = {
    "board": "cross40",
    "pieces": 3,
    "starter": "G",
    "max_turns": 100,
    "die": "popomatic",
    "extra_throw_needs_move": True,
    "max_sixes": 3,
    "play_for_places": True,
    "pass_allowed": False,
    "stretch_block": True,
    "two_colours": True,
    "battles": True,
    "batteries": True,
    "protected_start": True,
    "own_collision": "mover",
    "home": True,
    "empty_throws": 2,
    "three_throws_when": "none_on_track",
    "late": "referee",
    "win_at": "home",
    "members": "20+5/100",
}
"""For every option a value that plain Kimble does not have."""

OF_THE_LEDGER = {"late", "win_at"}
"""Options that change nothing on the board; the referee's tests show them to act."""


# ------------------------------------------------------------------------- what each option does


def story(rules: str, position: str, script: str) -> str:
    """Play dice and moves (``6 enter 4 3-7:1:6``); return the legal moves, position or error."""
    try:
        game = Game.from_text(f"{rules} {position}")
        for word in script.split():
            if word.isdigit():
                game.throw(int(word))
            elif ":" in word:
                move, attack, defence = word.split(":")
                game.play(move, (int(attack), int(defence)))
            else:
                game.play(word)
    except KimbleError as error:
        return type(error).__name__
    if game.die:
        return ", ".join(str(move) for move in game.legal_moves)
    return game.to_text().split(" ", 1)[1]


EFFECTS = [
    # option, preset, value, position, script, what follows without it, what follows with it
    ("board", "kimble", "cross40", "R-/B-/Y-/G7 R - 1", "6 enter",
     "R0/B-/Y-/G- R - 1", "R0/B-/Y-/G7 R - 1"),
    ("pieces", "kimble", "2", "R27,29/B-/Y-/G- R - 1", "1 27-28",
     "R28,29/B-/Y-/G- B - 1", "R28,29/B-/Y-/G- R * 0"),
    ("max_turns", "kimble", "1", "R-/B-/Y-/G- R - 1", "1 pass 1 pass",
     "R-/B-/Y-/G- Y - 1", "GameOverError"),
    ("die", "kimble", "popomatic", "R-/B-/Y-/G- R - 1", "5 pass",
     "R-/B-/Y-/G- B - 1", "R-/B-/Y-/G- B - 1 face=5"),
    ("extra_throw_needs_move", "kimble", "yes", "R3/B-/Y-/G- R - 1", "6 pass",
     "R3/B-/Y-/G- R - 1", "R3/B-/Y-/G- B - 1"),
    ("max_sixes", "kimble", "2", "R-/B-/Y-/G- R - 1", "6 enter 6 0-6",
     "R6/B-/Y-/G- R - 1", "R6/B-/Y-/G- B - 1"),
    ("play_for_places", "kimble", "yes", "R27,29,30,31/B-/Y-/G- R - 1", "1 27-28",
     "R28,29,30,31/B-/Y-/G- R * 0", "R28,29,30,31/B-/Y-/G- B - 1 places=R"),
    ("pass_allowed", "kimble", "no", "R3/B-/Y-/G- R - 1", "2", "3-5, pass", "3-5"),
    ("pass_allowed", "norske", "yes", "R3/B-/Y-/G- R - 1", "2", "3-5", "3-5, pass"),
    ("stretch_block", "kimble", "yes", "R27,29/B-/Y-/G- R - 1", "4", "27-31, pass", "pass"),
    ("two_colours", "kimble", "yes", "R3/B-/Y20/G- R - 1", "3", "3-6, pass", "pass"),
    ("battles", "kimble", "yes", "R3/B1/Y-/G- R - 1", "5 3-8:1:6",
     "IllegalMoveError", "R-/B1/Y-/G- B - 1"),
    ("batteries", "norske", "no", "R0/B-/Y-/G- R - 1", "6", "enter, 0-6", "0-6"),
    ("protected_start", "norske", "no", "R3/B0/Y-/G- R - 1", "4 3-7",
     "R-/B0/Y-/G- B - 1", "R7/B-/Y-/G- B - 3"),
    ("own_collision", "norske", "mover", "R29x2,31/B-/Y-/G- R - 1", "2 29-31",
     "R31x2/B-/Y-/G- B - 3", "R31/B-/Y-/G- B - 3"),
    ("own_collision", "norske", "stander", "R29,31x2/B-/Y-/G- R - 1", "2 29-31",
     "R31x2/B-/Y-/G- B - 3", "R31/B-/Y-/G- B - 3"),
    ("own_collision", "norske", "illegal", "R29,31/B-/Y-/G- R - 1", "2",
     "29-31", "R29,31/B-/Y-/G- B - 3"),
    ("home", "norske", "no", "R30/B-/Y-/G- R - 1", "2", "30-H", "R30/B-/Y-/G- B - 3"),
    ("empty_throws", "norske", "2", "R3/B-/Y-/G- R - 1", "2 3-5",
     "R5/B-/Y-/G- B - 3", "R5/B-/Y-/G- B - 2"),
    ("three_throws_when", "norske", "none_on_track", "R-/B-/Y3/G29 Y - 1", "2 3-5",
     "R-/B-/Y5/G29 G - 1", "R-/B-/Y5/G29 G - 3"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("option", "preset", "value", "position", "script", "without", "within"),
    EFFECTS,
    ids=[f"{preset}-{option}={value}" for option, preset, value, *_ in EFFECTS],
)
def test_option_acts(option, preset, value, position, script, without, within):
    assert story(preset, position, script) == without
    assert story(f"{preset}[{option}={value}]", position, script) == within


def test_every_option_is_shown_to_act():
    elsewhere = {"starter", "members"} | OF_THE_LEDGER  # members: tests/test_members.py
    assert {option for option, *_ in EFFECTS} | elsewhere == set(OPTIONS)
    assert set(SOME_VALUE) == set(OPTIONS)


@pytest.mark.parametrize("letter", "RBYG")
def test_a_fixed_starter_begins(letter):
    game = Game("kimble", starter=letter, seed=1)
    assert game.to_text() == f"kimble[starter={letter}] R-/B-/Y-/G- {letter} - 1"
    assert game.starter_dice == ()


# ------------------------------------------------------------------------------ values and texts


@pytest.mark.parametrize(
    "text",
    [
        "kimble",
        "kombat",
        "norske",
        "norske[own_collision=mover,pieces=2]",
        "kimble[pass_allowed=no]",
        "kimble[board=ludo52,die=popomatic,max_sixes=3,max_turns=400]",
        "kombat[two_colours=yes]",
    ],
)
def test_rules_text_is_read_and_written(text):
    assert str(find_rules(text)) == text


@pytest.mark.parametrize("preset", PRESETS)
def test_options_at_their_defaults_are_not_written(preset):
    written = ",".join(
        f"{name}={_word(getattr(PRESETS[preset], name))}" for name in OPTIONS if name != "board"
    )
    assert find_rules(f"{preset}[board=kimble28,{written}]") == PRESETS[preset]
    assert str(find_rules(f"{preset}[{written}]")) == preset


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


@settings(deadline=None, max_examples=100)
@given(
    preset=st.sampled_from(list(PRESETS)),
    names=st.sets(st.sampled_from(sorted(OPTIONS)), max_size=5),
    seats=st.sampled_from(["RB", "RY", "BYG", "RBYG"]),
)
def test_any_rules_that_can_be_survive_their_text(preset, names, seats):
    try:
        rules = find_rules(preset, seats=seats, **{name: SOME_VALUE[name] for name in names})
    except RulesError:
        return
    again = find_rules(str(rules), seats=rules.seats)
    assert again == rules
    assert again.hash == rules.hash
    assert np.array_equal(again.array, rules.array)


def test_options_come_as_words_numbers_or_numpy_numbers():
    assert find_rules("kimble", pieces=np.int64(2)) == find_rules("kimble", pieces="2")
    assert find_rules("kimble", pass_allowed="no") == find_rules("kimble[pass_allowed=no]")
    assert find_rules("kimble", max_turns="none").max_turns is None
    assert type(find_rules("kimble", pieces=np.int8(2)).pieces) is int


@pytest.mark.parametrize(
    ("given_seats", "seats"),
    [("RY", (0, 2)), ("b, g", (1, 3)), ([0, 1, 2], (0, 1, 2)), (np.array([1, 2]), (1, 2))],
)
def test_seats_come_as_letters_or_numbers(given_seats, seats):
    assert find_rules("kimble", seats=given_seats).seats == seats


def test_default_seats_per_number_of_players():
    assert {n: find_rules("kimble", players=n).seats for n in (2, 3, 4)} == DEFAULT_SEATS
    assert find_rules("kimble", players=2).players == 2
    assert find_rules("kimble", two_colours=True).players == 2


def test_rules_are_taken_as_they_are_and_changed_by_keywords():
    rules = find_rules("norske", pieces=2)
    assert find_rules(rules) is rules
    assert find_rules(rules, own_collision="mover") == find_rules(
        "norske[own_collision=mover,pieces=2]"
    )
    assert rules.replace(pieces=4) == PRESETS["norske"]


# ------------------------------------------------------------------------------------------ faults

FAULTS = [
    # rules, keywords, what the error says
    ("ludo", {}, "unknown rule set 'ludo'; known: kimble, kombat, norske"),
    ("kimble[", {}, "cannot read rules 'kimble['"),
    ("kimble]x[", {}, "cannot read rules"),
    (7, {}, "cannot read rules 7"),
    (None, {}, "cannot read rules None"),
    ("kimble[]", {}, "cannot read option ''; expected name=value"),
    ("kimble[pieces]", {}, "cannot read option 'pieces'"),
    ("kimble[pieces=]", {}, "cannot read option 'pieces='"),
    ("kimble[pieces=2,pieces=2]", {}, "option 'pieces' is given twice"),
    ("kimble[seats=RY]", {}, "seats is not written in rule texts"),
    ("kimble[players=2]", {}, "players is not written in rule texts"),
    ("kimble[wings=yes]", {}, "unknown option 'wings'; known: batteries, battles, board"),
    ("kimble", {"wings": True}, "unknown option 'wings'"),
    ("kimble[pieces=2]", {"pieces": 3}, "pieces is given twice: 2 and 3"),
    ("kimble", {"board": "chess64"}, "unknown board 'chess64'"),
    ("kimble", {"pieces": 0}, "pieces must lie in 1..4, got 0"),
    ("kimble", {"pieces": 5}, "pieces must lie in 1..4, got 5"),
    ("kimble", {"pieces": 2.0}, "pieces must be a whole number, got 2.0"),
    ("kimble", {"pieces": True}, "pieces must be a whole number, got True"),
    ("kimble", {"pieces": None}, "pieces must be a whole number, got None"),
    ("kimble", {"pieces": "two"}, "pieces must be a whole number, got 'two'"),
    ("kimble", {"pass_allowed": 1}, "pass_allowed must be yes or no, got 1"),
    ("kimble", {"pass_allowed": "maybe"}, "pass_allowed must be yes or no, got 'maybe'"),
    ("kimble", {"die": "loaded"}, "die must be one of uniform, popomatic, got 'loaded'"),
    ("kimble", {"die": 6}, "die must be one of uniform, popomatic, got 6"),
    ("kimble", {"starter": "first"}, "starter must be one of highest_roll, random, R, B, Y, G"),
    ("kimble", {"max_turns": 0}, "max_turns must lie in 1..2147483647, got 0"),
    ("kimble", {"max_sixes": "many"}, "max_sixes must be a whole number or none, got 'many'"),
    ("kimble", {"max_sixes": 101}, "max_sixes must lie in 1..100"),
    ("norske", {"own_collision": "both"}, "own_collision must be one of illegal, smaller, mover"),
    ("norske", {"empty_throws": 4}, "empty_throws must lie in 1..3"),
    ("norske", {"three_throws_when": "never"}, "three_throws_when must be one of none_in_play"),
    ("kimble", {"players": 1}, "players must be 2, 3 or 4, got 1"),
    ("kimble", {"players": 5}, "players must be 2, 3 or 4, got 5"),
    ("kimble", {"players": 2, "seats": "RBY"}, "players=2 but 3 seats given"),
    ("kimble", {"seats": "RX"}, "seats must be letters of RBYG, got 'RX'"),
    ("kimble", {"seats": ""}, "seats must be letters of RBYG, got ''"),
    ("kimble", {"seats": 3}, "seats must be letters or numbers, got 3"),
    ("kimble", {"seats": (0, 4)}, "seats must be a tuple of seat numbers 0..3"),
    ("kimble", {"seats": (0, True)}, "seats must be a tuple of seat numbers 0..3"),
    ("kimble", {"seats": (2, 0)}, "seats must be distinct and in clockwise order"),
    ("kimble", {"seats": "RR"}, "seats must be distinct and in clockwise order"),
    ("kimble", {"seats": "R"}, "at least two seats must play, got 1"),
    ("kimble", {"starter": "B", "players": 2}, "starter B does not play"),
    ("kombat", {"batteries": True}, "battles cannot be combined with batteries"),
    ("kombat", {"protected_start": True}, "battles cannot be combined with protected_start"),
    ("kombat", {"own_collision": "mover"}, "battles cannot be combined with own_collision"),
    ("norske", {"two_colours": True}, "two_colours (Kimble and Kombat only)"),
    ("kimble", {"two_colours": True, "players": 3}, "two_colours needs all four seats, got 3"),
    ("kimble", {"two_colours": True, "play_for_places": True}, "two players, one place"),
    ("norske", {"members": "20x"}, "members must be like 20, 20+5 or 20+5/100 (per mille)"),
    ("norske", {"members": "1001"}, "members must be like 20"),
    ("norske", {"members": "1/2/3"}, "members must be like 20"),
    ("norske", {"members": 20}, "members must be like 20"),
    (
        "kimble",
        {"members": "20", "two_colours": True},
        "two_colours cannot be combined with members",
    ),
]


@pytest.mark.parametrize(("rules", "options", "fault"), FAULTS)
def test_fault_of_rules_is_named(rules, options, fault):
    with pytest.raises(RulesError) as caught:
        find_rules(rules, **options)
    assert fault in str(caught.value)


def test_all_faults_are_named_at_once():
    with pytest.raises(RulesError) as caught:
        find_rules("kimble[pieces=9,wings=1,die=loaded,board=chess64]")
    assert len(caught.value.faults) == 4
    with pytest.raises(RulesError) as caught:
        find_rules("kombat", batteries=True, protected_start=True, starter="G", players=2)
    assert len(caught.value.faults) == 3
    with pytest.raises(RulesError) as caught:
        Rules("kimble", pieces=9, seats=(0, 0), die="loaded")
    assert len(caught.value.faults) == 3


def test_a_failed_replace_changes_nothing():
    rules = find_rules("norske")
    before = dataclasses.asdict(rules)
    with pytest.raises(RulesError):
        rules.replace(pieces=0)
    assert dataclasses.asdict(rules) == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules.pieces = 2  # type: ignore[misc]


# --------------------------------------------------------------------------------- hash and array


@pytest.mark.parametrize("option", OPTIONS)
def test_hash_covers_what_changes_legal_moves_or_outcomes(option):
    plain = find_rules("kimble")
    changed = plain.replace(**{option: SOME_VALUE[option]})
    counts = option not in {"starter", "max_turns"} | OF_THE_LEDGER
    assert (changed.hash != plain.hash) == counts
    assert OPTIONS[option].hashed == counts
    in_kernel = not np.array_equal(changed.array, plain.array)
    assert in_kernel == (option not in OF_THE_LEDGER)


@pytest.mark.parametrize(
    "change",
    [{"ring": 30}, {"starts": (0, 6, 14, 21)}, {"leave": 26}, {"stretch": 5}],
)
def test_hash_covers_the_board(change):
    plain = find_rules("kimble")
    other = Board(**{**dataclasses.asdict(plain.board), "name": "other", **change})
    assert plain.replace(board=other).hash != plain.hash


def test_hash_does_not_cover_names_and_seats():
    plain = find_rules("kimble")
    renamed = Board(**{**dataclasses.asdict(plain.board), "name": "other"})
    assert plain.replace(board=renamed).hash == plain.hash
    assert plain.replace(players=2).hash == plain.hash
    norske = {name: getattr(PRESETS["norske"], name) for name in OPTIONS}
    assert plain.replace(**norske).hash == PRESETS["norske"].hash


def test_hashes_of_the_presets_stay():
    """Models and tables carry these: they change only with the meaning of the rules."""
    hashes = {name: rules.hash for name, rules in PRESETS.items()}
    assert len(set(hashes.values())) == 3
    assert hashes == {
        "kimble": "81f5e313db49fe1b",
        "kombat": "e1770047fc079115",
        "norske": "63160ce764e4c9fd",
    }


def pickled(rules: Rules) -> Rules:
    """There and back through a pickle, as a spawned worker gets it."""
    again = pickle.loads(pickle.dumps(rules))
    assert isinstance(again, Rules)
    return again


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_copies_of_rules_keep_a_read_only_array(copied):
    """Compiled code takes a writable array for another type and would be compiled anew."""
    rules = find_rules("norske", pieces=3)
    assert not rules.array.flags.writeable
    again = copied(rules)
    assert again == rules
    assert not again.array.flags.writeable
    assert np.array_equal(again.array, rules.array)


def test_members_that_mean_the_same_are_the_same() -> None:
    same = [find_rules(f"norske[members={m}]") for m in ("20", "020", "20+0", "20/20", "20+0/20")]
    assert len({rules.hash for rules in same}) == 1
    assert {str(rules) for rules in same} == {"norske[members=20]"}
    assert str(find_rules("norske[members=20+5/100]")) == "norske[members=20+5/100]"


def test_win_at_is_hashed_where_members_can_fail() -> None:
    """It decides games only when a team can go out between its last piece home and its last cup."""
    assert find_rules("norske[win_at=home]").hash == find_rules("norske").hash
    with_members = find_rules("norske[members=20]")
    assert with_members.hash != with_members.replace(win_at="home").hash
