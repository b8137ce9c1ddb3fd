"""Pictures: layouts, SVG, text, pixels, the window; every board, and what a picture must show."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import types
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kimble_env import Game, kernel, render
from kimble_env.board import BOARDS, SEAT_LETTERS, Board
from kimble_env.errors import KimbleError, PositionError, RulesError
from kimble_env.notation import parse_position
from kimble_env.render.layout import BoardLayout, Spot, board_layout
from kimble_env.render.scene import SEAT_COLOURS
from kimble_env.render.view import LastMove, make_view
from kimble_env.rules import Rules, find_rules

ROOT = Path(__file__).resolve().parent.parent
SVG = "{http://www.w3.org/2000/svg}"
NAMES = re.compile(r"Red|Blue|Yellow|Green")

OWN_BOARDS = (
    Board("odd23", ring=23, starts=(0, 3, 4, 15), leave=19, stretch=3),
    Board("tiny8", ring=8, starts=(0, 2, 4, 6), leave=7, stretch=4),
    Board("crowded", ring=52, starts=(0, 1, 2, 3), leave=50, stretch=4),
    Board("early", ring=56, starts=(0, 14, 28, 42), leave=40, stretch=8),
    Board("short", ring=30, starts=(2, 9, 17, 24), leave=6, stretch=1),
    Board("lane", ring=12, starts=(0, 3, 6, 9), leave=6, stretch=49),
)
ALL_BOARDS = (*BOARDS.values(), *OWN_BOARDS)
RULES = [
    *(find_rules(name, board=board) for name in ("kimble", "norske") for board in BOARDS),
    find_rules("kombat"),
    find_rules("kombat[two_colours=yes]"),
    find_rules("norske[pieces=3]", seats="RBY"),
    find_rules("kimble[play_for_places=yes,pieces=2]"),
    find_rules("norske", board=OWN_BOARDS[0]),
    find_rules("kombat[pieces=1]", board=OWN_BOARDS[1], seats="BG"),
    find_rules("norske", board=OWN_BOARDS[5]),
]


def positions(rules: Rules, count: int = 40) -> Any:
    """Positions of random games of all lengths: with a die to play, before the throw, finished."""
    states, keys = kernel.empty_states(count), np.zeros(count, np.uint64)
    plays = np.zeros((count, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    kernel.game_keys(np.uint64(7), 0, keys)
    kernel.new_game_batch(states, rules.array, plays, keys, np.zeros((0, 2), np.int8))
    for first in range(0, count, 5):  # the further back in the batch, the longer the game
        kernel.play_random_batch(states[first:], rules.array, 60)
    actions = np.zeros(1, np.int64)
    for k in range(0, count, 2):
        if states["status"][k] == kernel.RUNNING:
            kernel.throw_batch(states[k : k + 1], rules.array, np.zeros(1, np.int8), actions)
    return states


def record(text: str) -> tuple[Rules, Any]:
    """The rules and the record of a position text."""
    return parse_position(text)


def pieces_by_place(rules: Rules, state: Any) -> dict[tuple[str, int], int]:
    """Number of pieces per (seat letter, progress)."""
    out: dict[tuple[str, int], int] = {}
    for seat in range(4):
        if state["plays"][seat]:
            for p in state["pieces"][seat][: rules.pieces].tolist():
                out[SEAT_LETTERS[seat], p] = out.get((SEAT_LETTERS[seat], p), 0) + 1
    return out


# ------------------------------------------------------------------------------------------ layout


def all_spots(layout: BoardLayout) -> list[Spot]:
    spots = [*layout.ring, layout.dome]
    for seat in layout.seats:
        spots += [*seat.base, *seat.stretch] + ([seat.home] if layout.has_home else [])
    return spots


@pytest.mark.parametrize("board", ALL_BOARDS, ids=lambda board: board.name)
@pytest.mark.parametrize("home", [False, True])
def test_places_are_apart_and_inside_the_frame(board: Board, home: bool) -> None:
    for pieces, viewer in ((1, 0), (2, 1), (3, 2), (4, 3)):
        layout = board_layout(board, pieces=pieces, home=home, viewer=viewer)
        spots = all_spots(layout)
        assert len(layout.ring) == board.ring
        assert len(spots) == board.ring + 1 + 4 * (pieces + board.stretch + home)
        for spot in spots:
            assert spot.radius > 1.0
            assert spot.radius <= spot.x <= layout.width - spot.radius
            assert spot.radius <= spot.y <= layout.caption[1] - spot.radius
        for a, b in combinations(spots, 2):
            assert math.dist(a[:2], b[:2]) > a.radius + b.radius, (a, b)


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_fields_of_the_known_boards_can_be_read(board: Board) -> None:
    layout = board_layout(board, home=True)
    assert min(spot.radius for spot in all_spots(layout)) > 15  # a piece 20 pixels wide at 640


@pytest.mark.parametrize("board", ALL_BOARDS, ids=lambda board: board.name)
def test_homes_do_not_touch(board: Board) -> None:
    """Two convex shapes are apart if a side of one parts them."""

    def parted(a: Any, b: Any) -> bool:
        for (ax, ay), (bx, by) in zip(a, (*a[1:], a[0]), strict=True):
            sides = [(bx - ax) * (y - ay) - (by - ay) * (x - ax) for x, y in b]
            if all(side < 0 for side in sides):
                return True
        return False

    triangles = [seat.triangle for seat in board_layout(board, home=True).seats]
    for a, b in combinations(triangles, 2):
        assert parted(a, b) or parted(b, a)


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_turning_the_board_by_a_seat_is_a_quarter_turn(board: Board) -> None:
    def turned(spot: Spot) -> tuple[float, float]:
        return 1000.0 - spot.y, spot.x  # clockwise, y down

    layout = board_layout(board, home=True)
    other = board_layout(board, home=True, viewer=1)
    for seat in range(4):
        after = (seat + 1) % 4
        for p in range(board.home + 1):
            here = layout.spot(seat, p)
            assert turned(here) == pytest.approx(layout.spot(after, p)[:2])
            assert here[:2] == pytest.approx(other.spot(after, p)[:2])
        assert turned(layout.seats[seat].plate) == pytest.approx(layout.seats[after].plate[:2])


def test_the_viewer_sits_at_the_lower_left() -> None:
    for viewer in range(4):
        plate = board_layout(BOARDS["kimble28"], viewer=viewer).seats[viewer].plate
        assert plate.x < 200
        assert plate.y > 800


@pytest.mark.parametrize("board", ALL_BOARDS, ids=lambda board: board.name)
def test_a_route_runs_clockwise_over_the_fields_of_the_board(board: Board) -> None:
    layout = board_layout(board, home=True)
    for seat in range(4):
        for p in range(board.leave + 1):
            assert layout.spot(seat, p) == layout.ring[board.field(seat, p) or 0]
        assert layout.spot(seat, board.stretch_first) == layout.seats[seat].stretch[0]
        assert layout.spot(seat, board.home) == layout.seats[seat].home
        assert layout.spot(seat, -1, 2) == layout.seats[seat].base[2]
    turns = [(b.angle - a.angle) % 360 for a, b in zip(layout.ring, layout.ring[1:], strict=False)]
    assert 0 < sum(turns) < 360
    assert min(turns) > 0


@pytest.mark.parametrize("board", ALL_BOARDS, ids=lambda board: board.name)
def test_a_stretch_leads_from_where_the_route_leaves_the_ring_inwards(board: Board) -> None:
    layout = board_layout(board, home=True)
    middle = layout.dome[:2]
    for seat in range(4):
        way = [layout.spot(seat, p) for p in range(board.leave, board.home + 1)]
        far = [math.dist(spot[:2], middle) for spot in way]
        assert far == sorted(far, reverse=True)
        for spot in way:  # all in one line with the middle
            ends = [(s.x - middle[0], s.y - middle[1]) for s in (way[0], spot)]
            assert ends[0][0] * ends[1][1] == pytest.approx(ends[0][1] * ends[1][0], abs=1e-6)


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_a_start_lies_beside_its_own_corner(board: Board) -> None:
    layout = board_layout(board)
    for seat in layout.seats:
        start = layout.spot(seat.seat, 0)
        far = [math.dist(start[:2], other.plate[:2]) for other in layout.seats]
        assert far.index(min(far)) == seat.seat
        assert min(far) < 300


def test_the_layout_is_data_for_json() -> None:
    layout = board_layout(BOARDS["ludo52"], pieces=3, home=True)
    data = layout.as_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["board"]["ring"] == len(data["ring"]) == 52
    assert [seat["letter"] for seat in data["seats"]] == list("RBYG")
    assert len(data["seats"][2]["base"]) == 3
    assert data["ring"][5]["x"] == pytest.approx(layout.ring[5].x, abs=0.01)
    assert set(data["ring"][0]) == {"x", "y", "radius", "angle"}


def test_a_layout_refuses_what_is_not_there() -> None:
    layout = board_layout(BOARDS["kimble28"])
    with pytest.raises(RulesError, match="no progress 32"):
        layout.spot(0, 32)
    with pytest.raises(RulesError, match="viewer"):
        board_layout(BOARDS["kimble28"], viewer=4)
    with pytest.raises(RulesError, match="pieces"):
        board_layout(BOARDS["kimble28"], pieces=5)


# --------------------------------------------------------------------------------------------- SVG


def groups(picture: str, kind: str) -> list[ET.Element]:
    return [g for g in ET.fromstring(picture).iter(f"{SVG}g") if g.get("class") == kind]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_svg_holds_every_piece_where_it_stands(rules: Rules) -> None:
    for state in positions(rules):
        picture = render.svg(rules, state)
        layout = board_layout(rules.board, pieces=rules.pieces, home=rules.home)
        found: dict[tuple[str, int], int] = {}
        slots: dict[str, int] = {}
        for unit in groups(picture, "unit"):
            letter, progress = unit.get("data-seat", ""), int(unit.get("data-progress", ""))
            count = int(unit.get("data-count", ""))
            found[letter, progress] = found.get((letter, progress), 0) + count
            words = [text.text for text in unit.iter(f"{SVG}text")]
            assert words == [letter] + ([f"×{count}"] if count > 1 else [])
            slot = slots.get(letter, 0)
            slots[letter] = slot + (progress == -1)
            spot = layout.spot(SEAT_LETTERS.index(letter), progress, slot)
            assert float(next(unit.iter(f"{SVG}text")).get("x", "")) == pytest.approx(spot.x, abs=1)
        assert found == pieces_by_place(rules, state)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_svg_shows_the_die_the_turn_and_the_end(rules: Rules) -> None:
    ended = 0
    for state in positions(rules):
        picture = render.svg(rules, state)
        root = ET.fromstring(picture)
        title = root.findtext(f"{SVG}title") or ""
        (die,) = groups(picture, "die")
        running = state["status"] == kernel.RUNNING
        waits = running and state["die"] > 0
        assert die.get("data-waits") == ("true" if waits else "false")
        assert die.get("data-face") == str(state["die"] if waits else state["last_die"])
        assert len(groups(picture, "name")) == len(rules.seats)
        name = ("red", "blue", "yellow", "green")[int(state["seat"])]
        if running:
            assert name in title.lower()
            assert ("to play" in title) == bool(waits)
            throws = int(state["throws"])
            assert ("throws left" in title) == (throws > 1)
        else:
            assert "win" in title
            ended += 1
    assert ended > 0


def test_svg_stands_alone_and_says_what_it_shows() -> None:
    rules, state = record("norske R3,20/B0x2/YHx2/G- R 4 1 out=G")
    picture = render.svg(rules, state, width=300)
    root = ET.fromstring(picture)
    assert root.get("width") == "300"
    assert root.get("height") == "330"
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Norske: Red to play a 4"
    description = root.findtext(f"{SVG}desc") or ""
    assert "Blue: 2 in home base, battery of 2 on 0." in description
    assert "Yellow: 2 in home base, 2 home." in description
    assert "Green (out): 4 in home base." in description
    assert not re.search(r"href|url\(|<script|<style|<image| id=", picture)
    assert picture.count("http") == 1  # the name space
    assert picture == render.svg(str(rules), state[0], width=300)


def test_svg_of_the_last_move() -> None:
    game = Game.from_text("norske R9/B4x3,20/Y-/G- R 2 1")
    assert groups(game._repr_svg_(), "last-move") == []
    game.play("9-11")
    picture = render.svg(game)
    (move,) = groups(picture, "last-move")
    assert (move.get("data-seat"), move.get("data-source")) == ("R", "9")
    assert move.get("data-target") == "11"
    assert "Red threw 2: 9-11, captures blue ×3" in picture
    assert SEAT_COLOURS[1].main in {p.get("fill") for p in move.iter(f"{SVG}polygon")}  # the burst


def test_a_battle_shows_both_dice_in_the_colours_of_the_two() -> None:
    game = Game.from_text("kombat R3/B1/Y-/G- R 5 1")
    game.play("3-8", (3, 4))
    picture = render.svg(game)
    dice = groups(picture, "battle-die")
    assert [die.get("data-face") for die in dice] == ["3", "4"]
    bodies = [next(die.iter(f"{SVG}rect")).get("fill") for die in dice]
    assert bodies == [SEAT_COLOURS[0].main, SEAT_COLOURS[1].main]
    assert "battle 3:4, red loses, blue loses" in picture


# ---------------------------------------------------------------------------------------- sentences


@pytest.mark.parametrize(
    ("text", "move", "battle", "sentence"),
    [
        ("norske R3/B0/Y-/G- R 4 1", "3-7", None, "protected start, red goes back"),
        ("norske R5x2/B0/Y-/G- R 2 1", "5-7", None, "protected start, red ×2 goes back"),
        ("norske R29x2,31/B-/Y-/G- R 2 1", "29-31", None, "onto its own, red goes back"),
        ("norske R29x2,Hx2/B-/Y-/G- R 3 1", "29-H", None, "29-H, home ×2"),
        ("norske R30,27/B-/Y-/G- R 2 1", "30-H", None, "30-H, home"),
        ("kimble R3/B0/Y-/G- R 4 1", "3-7", None, "3-7, captures blue"),
        ("kimble R3/B0/Y-/G- R 5 1", "pass", None, "Red threw 5: pass"),
        ("kimble R-/B-/Y-/G- R 6 1", "enter", None, "Red threw 6: enter"),
        ("kombat R3/B1/Y-/G- R 5 1", "3-8", (1, 6), "battle 1:6, red loses"),
        ("kombat R3/B1/Y-/G- R 5 1", "3-8", (6, 1), "battle 6:1, blue loses"),
    ],
)
def test_the_last_move_in_words(
    text: str, move: str, battle: tuple[int, int] | None, sentence: str
) -> None:
    game = Game.from_text(text)
    game.play(move, battle)
    assert make_view(game).last_sentence().endswith(sentence)
    assert sentence in render.text(game)


def test_a_throw_without_a_move_in_words() -> None:
    game = Game.from_text("norske R-/B-/Y-/G- R - 3")
    assert make_view(game).headline() == "Red to throw, 3 throws left"
    game.throw(2)
    view = make_view(game)
    assert view.last_sentence() == "Red threw 2: no move"
    assert view.headline() == "Red to throw, 2 throws left"


def test_winners_in_words() -> None:
    game = Game.from_text("kimble R27,29,30,31/Y- R 1 1")
    game.play("27-28")
    assert make_view(game).headline() == "Red wins"
    game = Game.from_text("kombat[two_colours=yes] R28,29,30,31/B-/Y27,29,30,31/G- Y 1 1")
    game.play("27-28")
    assert make_view(game).headline() == "Red and yellow win"
    rules = find_rules("kimble[max_turns=1]")
    states = positions(rules, 10)
    states[0]["status"], states[0]["winner"] = kernel.TRUNCATED, -1
    assert make_view(rules, states[0]).headline() == "Cut off: no winner"


def test_a_move_of_before_can_be_shown_while_a_die_waits() -> None:
    game = Game.from_text("kimble R3/B1,0/Y-/G- R 5 1")
    game.play("3-8")
    before = LastMove.from_state(game.rules, game.state)
    game.throw(6)
    assert LastMove.from_state(game.rules, game.state) is None
    assert groups(render.svg(game), "last-move") == []
    picture = render.svg(game, last=before)
    assert len(groups(picture, "last-move")) == 1
    assert groups(picture, "die")[0].get("data-face") == "6"
    assert "captures blue" in render.text(game, last=before)
    assert (render.rgb_array(game) != render.rgb_array(game, last=before)).any()


def test_the_log_of_forced_throws_gives_the_same_last_moves() -> None:
    for name in ("norske", "kombat[pass_allowed=no]"):
        rules = find_rules(name)
        (state,) = positions(rules, 1)
        log, seen = np.zeros((1, kernel.LOG_COLUMNS), np.int8), set()
        dice, actions = np.zeros(1, np.int8), np.zeros(1, np.int64)
        states = np.array([state])
        for _ in range(400):
            if states["status"][0] != kernel.RUNNING:
                break
            if states["die"][0] == 0:
                kernel.throw_batch(states, rules.array, dice, actions)
            if states["die"][0] != 0:
                action = int(actions[0]).bit_length() - 1
                battle = np.zeros((1, 2), np.int8)
                kernel.play_batch(states, rules.array, np.array([action], np.int16), battle)
            s = states[0]
            row = [s["last_seat"], s["last_die"], s["last_action"], *s["last_battle"]]
            log[0] = [*row, s["event_count"], *s["events"].ravel()]
            move = LastMove.from_log(rules, log[0])
            assert move == LastMove.from_state(rules, s)
            seen.add((move.source is None, len(move.losses), move.battle is None))
        assert len(seen) >= 3


# -------------------------------------------------------------------------------------------- text


def board_lines(picture: str) -> str:
    """The lines of the board alone, without the names of seats."""
    lines = picture.splitlines()
    end = max(k for k, line in enumerate(lines) if line == "")
    return NAMES.sub("", "\n".join(lines[2:end]))


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_text_holds_every_piece_in_80_columns(rules: Rules) -> None:
    for state in positions(rules):
        picture = render.text(rules, state)
        assert max(len(line) for line in picture.splitlines()) <= 80
        assert len(picture.splitlines()) <= 24
        picture.encode("latin-1")
        found = dict.fromkeys("RBYG", 0)
        for letter, count in re.findall(r"([RBYG])(?:×(\d))?", board_lines(picture)):
            found[letter] += int(count or 1)
        for seat, letter in enumerate(SEAT_LETTERS):
            assert found[letter] == (rules.pieces if state["plays"][seat] else 0)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_text_with_colours_says_the_same(rules: Rules) -> None:
    for state in positions(rules, 10):
        plain = render.text(rules, state)
        coloured = render.text(rules, state, colour=True)
        assert "\x1b[" in coloured
        assert "\x1b" not in plain
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
        assert all(
            line.endswith("\x1b[0m") for line in coloured.splitlines() if "\x1b" in line[-5:]
        )


def test_text_word_for_word() -> None:
    game = Game.from_text("norske R0x2,9,H/B4x3,20/Y29,31,Hx2/G2,15 R 2 1")
    game.play("9-11")
    assert render.text(game) == (ROOT / "tests/golden/board.txt").read_text(encoding="utf-8")
    assert str(game) == render.text(game)


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_the_known_boards_are_squares_and_others_lists(board: Board) -> None:
    rules = find_rules("norske", board=board)
    (state,) = positions(rules, 1)
    assert "\n  0  " not in render.text(rules, state)
    rules = find_rules("norske", board=OWN_BOARDS[0])
    (state,) = positions(rules, 1)
    assert "\n  0  " in render.text(rules, state)


def test_every_field_of_the_square_is_drawn_once() -> None:
    for board in BOARDS.values():
        rules = find_rules("kimble", board=board, seats="RBYG")
        state = kernel.empty_states(1)
        state["plays"], state["pieces"], state["last_seat"] = 1, -1, -1
        lines = board_lines(render.text(rules, state))
        assert sum(lines.count(c) for c in "·rbyg") == board.ring
        assert lines.count("-") == 4 * board.stretch


def test_the_die_waits_in_square_brackets() -> None:
    game = Game.from_text("kimble R3/B0/Y-/G- R 4 1")
    assert "[4]" in render.text(game)
    game.play("3-7")
    picture = render.text(game)
    assert "(4)" in picture
    assert "»Blue" in picture
    assert ">R" in picture
    assert "°" in picture


# ------------------------------------------------------------------------------------------ pixels


def rgb(colour: str) -> np.ndarray[Any, Any]:
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_pixels_show_the_colour_of_every_unit(rules: Rules) -> None:
    layout = board_layout(rules.board, pieces=rules.pieces, home=rules.home)
    for state in positions(rules, 6):
        width = 900
        frame = render.rgb_array(rules, state, width=width)
        assert frame.shape == (990, 900, 3)
        assert frame.dtype == np.uint8
        for unit in make_view(rules, state).units:
            spot = layout.spot(unit.seat, unit.progress)
            if spot.radius < 8:
                continue  # a stretch of 49 fields: too small to look for one pixel
            part = 0.86 if spot.radius > 24 else 0.92
            x = (spot.x + 0.74 * part * spot.radius) * width / 1000  # between letter and edge
            pixel = frame[int(spot.y * width / 1000), int(x)].astype(int)
            assert np.abs(pixel - rgb(SEAT_COLOURS[unit.seat].main)).max() < 40


def test_pixels_are_the_same_every_time_and_never_shared() -> None:
    rules = find_rules("kombat")
    frames = [render.rgb_array(rules, state) for state in positions(rules, 8)]
    again = [render.rgb_array(rules, state) for state in positions(rules, 8)]
    for a, b in zip(frames, again, strict=True):
        assert np.array_equal(a, b)
        assert a.flags.writeable
        a[:] = 0  # spoils nothing that is kept
    for b, state in zip(again, positions(rules, 8), strict=True):
        assert np.array_equal(b, render.rgb_array(rules, state))


def test_pixels_are_equal_in_another_process() -> None:
    code = (
        "import hashlib; from kimble_env import Game, render;"
        "game = Game.from_text('norske R0x2,9,H/B4x3,20/Y29,31,Hx2/G2,15 R 2 1');"
        "print(hashlib.sha256(render.rgb_array(game).tobytes()).hexdigest())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout) == 65


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("kimble R3/B0/Y-/G- R 4 1", "kimble R4/B0/Y-/G- R 4 1"),  # a piece
        ("kimble R3/B0/Y-/G- R 4 1", "kimble R3/B0/Y-/G- R 5 1"),  # the die
        ("kimble R3/B0/Y-/G- R - 1", "kimble R3/B0/Y-/G- B - 1"),  # the turn
        ("norske R-/B-/Y-/G- R - 3", "norske R-/B-/Y-/G- R - 2"),  # throws left
        ("norske R3x2/B-/Y-/G- R - 1", "norske R3x3/B-/Y-/G- R - 1"),  # a battery
        ("norske R3/B-/Y-/G- R - 1", "norske R3/B-/Y-/G- R - 1 out=G"),  # a seat out
        ("norske R3,Hx2/B-/Y-/G- R - 1", "norske R3,Hx3/B-/Y-/G- R - 1"),  # home
        ("kimble R3/B-/Y- R - 1", "kimble R3/B-/Y-/G- R - 1"),  # who plays
    ],
)
def test_what_differs_looks_different(one: str, other: str) -> None:
    frames = [render.rgb_array(*record(text)).astype(int) for text in (one, other)]
    changed = np.abs(frames[0] - frames[1]).max(axis=2) > 60
    assert changed.sum() > 60
    assert render.text(*record(one)) != render.text(*record(other))
    assert render.svg(*record(one)) != render.svg(*record(other))


def test_a_moved_piece_changes_nothing_elsewhere() -> None:
    frames = [render.rgb_array(*record(f"kimble R{p}/B0/Y-/G- R - 1"), width=500) for p in (3, 20)]
    changed = np.argwhere((frames[0] != frames[1]).any(axis=2))
    layout = board_layout(BOARDS["kimble28"])
    for y, x in changed:
        near = [
            math.dist((x, y), (layout.spot(0, p).x / 2, layout.spot(0, p).y / 2)) for p in (3, 20)
        ]
        assert min(near) < 20


def test_video_encoders_like_the_default_size() -> None:
    for width in (480, 640, 800):
        frame = render.rgb_array(*record("kimble R3/B0 R - 1"), width=width)
        assert frame.shape[0] % 16 == 0
        assert frame.shape[1] % 16 == 0


def test_the_smallest_and_an_odd_size_can_be_drawn() -> None:
    for width in (160, 333):
        frame = render.rgb_array(*record("norske R3x2,H/B0/Y-/G- R 4 1"), width=width)
        assert frame.shape == (round(width * 1.1), width, 3)


def test_every_letter_that_is_written_has_a_glyph() -> None:
    from kimble_env.render.font import GLYPHS

    written: set[str] = set()
    for rules in RULES:
        for state in positions(rules, 20):
            view = make_view(rules, state)
            written |= set(view.headline() + view.last_sentence() + rules.name)
    written |= set("Red Blue Yellow Green P0 P1 out 1st 2nd 3rd 4th × · Cut off: no winner")
    written |= set(
        "protected start, goes back onto its own captures battle loses home pass enter H-"
    )
    assert written - set(GLYPHS) <= {" "}


# ------------------------------------------------------------------------------------------ window


@pytest.fixture
def pygame(monkeypatch: pytest.MonkeyPatch) -> Any:
    """pygame-ce without a screen."""
    if importlib.util.find_spec("pygame") is None:
        if os.environ.get("KIMBLE_REQUIRE_ALL"):
            pytest.fail("pygame-ce is not installed (KIMBLE_REQUIRE_ALL is set)")
        pytest.skip("pygame-ce is not installed (the extra `render`)")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import pygame as module

    return module


def test_a_window_shows_the_same_frame(pygame: Any) -> None:
    rules, state = record("norske R3x2,H/B0/Y-/G- R 4 1")
    with render.Window(width=320) as window:
        assert not window.is_open
        assert window.show(rules, state)
        assert window.is_open
        surface = window._window.get_surface()
        shown = pygame.surfarray.array3d(surface).swapaxes(0, 1)
        assert np.array_equal(shown, render.rgb_array(rules, state, width=320))
        assert window.show(rules, state)
    assert not window.is_open
    window.close()
    assert not pygame.display.get_init()


def test_a_window_that_the_user_closes_stays_closed(pygame: Any) -> None:
    game = Game("kimble", seed=1)
    window, other = render.Window(width=200), render.Window(width=200)
    assert window.show(game)
    assert other.show(game)
    pygame.event.post(pygame.event.Event(pygame.WINDOWCLOSE, window=window._window))
    assert other.show(game)
    assert not window.show(game)
    assert window.was_shut
    assert not window.is_open
    assert other.is_open
    window.close()
    assert window.show(game)  # after close() it opens again
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    assert not window.show(game)
    assert not other.show(game)
    assert not pygame.display.get_init()


def test_a_window_waits_for_its_pace(pygame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr("time.sleep", naps.append)
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    game = Game("kimble", seed=1)
    with render.Window(width=160, fps=4) as window:
        for _ in range(3):
            window.show(game)
    assert naps == pytest.approx([0.25, 0.5])


def test_without_pygame_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    game = Game("kimble", seed=1)
    monkeypatch.setitem(sys.modules, "pygame", None)
    window = render.Window()
    with pytest.raises(ImportError, match=r"pip install 'kimble-rl\[render\]'"):
        window.show(game)
    older: Any = types.ModuleType("pygame")
    older.version = types.SimpleNamespace(ver="2.6.1")
    monkeypatch.setitem(sys.modules, "pygame", older)
    with pytest.raises(ImportError, match=r"found pygame 2\.6\.1.*kimble-rl\[render\]"):
        window.show(game)
    assert not window.is_open
    window.close()


def test_pictures_need_neither_pygame_nor_gymnasium() -> None:
    code = (
        "import sys; from kimble_env import Game, render; game = Game('kimble', seed=1);"
        "assert not [m for m in sys.modules if m.startswith('kimble_env.render.')];"
        "render.svg(game), render.text(game), render.rgb_array(game);"
        "assert not {'pygame', 'PIL', 'matplotlib', 'gymnasium.envs'} & set(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "KIMBLE_QUIET": "1"}
    )


# ------------------------------------------------------------------------------------------ misuse

FUNCTIONS = (render.svg, render.text, render.rgb_array, make_view)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_what_cannot_be_drawn_is_named(function: Any) -> None:
    rules = find_rules("kimble")
    states = positions(rules, 2)
    before = states.tobytes()
    with pytest.raises(PositionError, match="one"):
        function(rules, states)
    with pytest.raises(PositionError, match="STATE"):
        function(rules, np.zeros(1, np.int8))
    with pytest.raises(PositionError, match="STATE"):
        function(rules, None)
    with pytest.raises(RulesError, match="unknown rule set 'chess'"):
        function("chess", states[0])
    with pytest.raises(RulesError, match="got int"):
        function(5, states[0])
    with pytest.raises(PositionError, match="last must be a LastMove"):
        function(rules, states[0], last=(0, 5, 3))
    assert states.tobytes() == before


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_record_of_other_rules_is_named(function: Any) -> None:
    rules, state = record("norske R30,H/B-/Y-/G- B - 3")
    with pytest.raises(PositionError, match="red has a piece on 32"):
        function("kimble", state)
    with pytest.raises(PositionError, match="red has more than 1 pieces"):
        function("norske[pieces=1]", state)
    state["seat"], state["die"] = 7, 9
    with pytest.raises(PositionError, match="seat to act must be 0 to 3, got 7; die must be"):
        function(rules, state)


def test_sizes_and_viewers_out_of_range_are_named() -> None:
    rules, state = record("kimble R3/B0/Y-/G- R 4 1")
    for function in (render.svg, render.text, render.rgb_array):
        for viewer in (-1, 4, "R", None):
            with pytest.raises(RulesError, match="viewer"):
                function(rules, state, viewer=viewer)
    for width in (0, -3, 2.5, "640", True):
        with pytest.raises(RulesError, match="width"):
            render.svg(rules, state, width=width)
    for width in (159, 4097, 640.0, None):
        with pytest.raises(RulesError, match="width"):
            render.rgb_array(rules, state, width=width)
    for options in ({"width": 10}, {"fps": 0}, {"viewer": 9}):
        with pytest.raises(RulesError, match=next(iter(options))):
            render.Window(**options)
    with pytest.raises(AttributeError, match="no attribute 'png'"):
        _ = render.png
    with pytest.raises(PositionError, match="14 numbers"):
        LastMove.from_log(rules, np.zeros(3, np.int8))
    with pytest.raises(KimbleError, match="action 99"):
        LastMove.from_log(rules, np.full(kernel.LOG_COLUMNS, 99, np.int8))


# ------------------------------------------------------------------------- pictures in documents


def test_the_pictures_of_the_documents_are_fresh() -> None:
    spec = importlib.util.spec_from_file_location("docs_pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = {path.stem for path in (ROOT / "docs" / "images").glob("*.svg")}
    assert files == set(module.PICTURES)
    stale = [
        name
        for name in module.PICTURES
        if (module.IMAGES / f"{name}.svg").read_text(encoding="utf-8") != module.draw(name)
    ]
    assert not stale, f"run `python docs/pictures.py` to renew {stale}"
