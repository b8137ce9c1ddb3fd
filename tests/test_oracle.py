"""The oracle against itself: position texts, what is always true (rules, §10), and a few counts."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from oracle import BOARDS, DEFAULTS, LETTERS, WAITING, Oracle, random_position

# Rule sets that between them use every option and every kind of seating.
RULE_SETS = [
    "kimble R-/B-/Y-/G- R - 1",
    "kimble R-/Y- R - 1",
    "kombat R-/B-/Y-/G- R - 1",
    "norske R-/B-/Y-/G- R - 3",
    "norske R-/B-/Y- R - 3",
    "norske[board=ludo52] R-/B-/Y-/G- R - 3",
    "kimble[board=cross40,pass_allowed=no] R-/B-/Y-/G- R - 1",
    "kombat[board=ludo52,max_sixes=2] R-/B-/Y-/G- R - 1",
    "kombat[two_colours=yes] R-/B-/Y-/G- R - 1",
    "kimble[extra_throw_needs_move=yes,max_sixes=3,two_colours=yes] R-/B-/Y-/G- R - 1",
    "kimble[max_turns=40,play_for_places=yes,stretch_block=yes] R-/B-/Y-/G- R - 1",
    "kimble[empty_throws=3,home=yes,own_collision=stander,protected_start=yes] R-/B-/Y- R - 3",
    "kimble[batteries=yes,own_collision=mover] R-/B-/Y-/G- R - 1",
    "norske[own_collision=mover,play_for_places=yes,stretch_block=yes] R-/B-/Y-/G- R - 3",
    "norske[own_collision=illegal,pieces=3,three_throws_when=none_on_track] R-/B-/Y-/G- R - 3",
    "norske[batteries=no,max_sixes=2,pass_allowed=yes] R-/B-/Y-/G- R - 3",
    "norske[home=no,protected_start=no] R-/B-/Y-/G- R - 3",
]

rule_sets = pytest.mark.parametrize("start", RULE_SETS)

# A game's record: one entry a throw: die, move or None, battle dice or None.
Record = list[tuple[int, str | None, tuple[int, int] | None]]


def at_random(start: str) -> random.Random:
    """Dice of its own for each rule set, the same in every run."""
    return random.Random(start)


def play_on(game: Oracle, move: str, rng: random.Random) -> tuple[int, int] | None:
    """Play a move, throwing the battle dice if it needs them."""
    try:
        game.play(move)
    except ValueError:
        battle = rng.randint(1, 6), rng.randint(1, 6)
        game.play(move, battle)
        return battle
    return None


def random_game(game: Oracle, rng: random.Random, throws: int) -> tuple[list[str], Record]:
    """Play at random, passing seldom: the position after each call, and the record."""
    texts = [game.to_text()]
    record: Record = []
    for _ in range(throws):
        if game.over:
            break
        die = game.die or rng.randint(1, 6)
        if game.die is None:
            game.throw(die)
        moves = game.legal_moves()
        if not moves:
            record.append((die, None, None))
        else:
            texts.append(game.to_text())
            move = rng.choice(moves[:-1] * 8 + moves[-1:])
            record.append((die, move, play_on(game, move, rng)))
        texts.append(game.to_text())
    return texts, record


def random_texts(start: str, count: int) -> list[str]:
    """Random positions of the rule set of this first position."""
    game, rng = Oracle.from_text(start), at_random(start)
    changed = {
        name: value
        for name, value in game.options.items()
        if value != Oracle(game.preset, game.seats).options[name]
    }
    return [random_position(rng, game.preset, game.seats, **changed) for _ in range(count)]


def with_die(text: str) -> list[Oracle]:
    """The position, or its six positions with a die where a seat has a choice to make."""
    game = Oracle.from_text(text)
    if game.die is not None:
        return [game]
    games = []
    for die in range(1, 7):
        game = Oracle.from_text(text)
        game.throw(die)
        if game.die is not None:
            games.append(game)
    return games


@rule_sets
def test_texts_of_random_play_read_back(start: str) -> None:
    texts, _ = random_game(Oracle.from_text(start), at_random(start), 300)
    for text in texts:
        assert Oracle.from_text(text).to_text() == text


@rule_sets
def test_texts_of_random_positions_read_back(start: str) -> None:
    texts = random_texts(start, 200)
    assert len(set(texts)) > 150
    for text in texts:
        game = Oracle.from_text(text)
        assert game.to_text() == text
        assert not game.over


@rule_sets
def test_a_recorded_game_replays(start: str) -> None:
    texts, record = random_game(Oracle.from_text(start), at_random(start), 300)
    game = Oracle.from_text(start)
    seen = [game.to_text()]
    for die, move, battle in record:
        game.throw(die)
        if move is not None:
            seen.append(game.to_text())
            game.play(move, battle)
        seen.append(game.to_text())
    assert seen == texts


@rule_sets
def test_games_end(start: str) -> None:
    """Random play finishes; the winner, or nobody at max_turns, is in the text and the ranking."""
    game = Oracle.from_text(start)
    random_game(game, at_random(start), 20_000)
    assert game.over
    assert sorted(game.ranking()) == sorted(game.seats)
    if game.truncated:
        assert game.winner is None
        assert game.turn == game.options["max_turns"]
    else:
        assert game.ranking()[0] == game.winner
        assert f" {LETTERS[game.winner]} * 0" in game.to_text()
    with pytest.raises(ValueError, match="over"):
        game.throw(1)


def check_position(game: Oracle) -> None:
    """What is true of every position."""
    for seat in game.seats:
        pieces = game.pieces[seat]
        assert len(pieces) == game.options["pieces"]
        assert all(WAITING <= p <= game.board.home for p in pieces)
        if not game.options["batteries"]:
            standing = [p for p in pieces if p not in (WAITING, game.board.home)]
            assert len(set(standing)) == len(standing)
    owners = {(game.board.field(seat, p), seat) for seat in game.seats for p in game.pieces[seat]}
    taken = Counter(field for field, _ in owners if field is not None)
    assert all(count == 1 for count in taken.values())
    assert game.over or 1 <= game.throws <= game.options["empty_throws"]


def check_move(text: str, move: str, rng: random.Random) -> None:
    """What is true of every move from a position with a die."""
    before, after = Oracle.from_text(text), Oracle.from_text(text)
    play_on(after, move, rng)
    check_position(after)
    lost = Counter[int]()
    arrived = Counter[int]()
    for kind, seat, count, *_ in after.events:
        (lost if kind == "loss" else arrived)[seat] += count
    assert (move != "pass") or not after.events
    home = before.board.home
    for seat in before.seats:
        old, new = before.pieces[seat], after.pieces[seat]
        assert new.count(home) == old.count(home) + arrived[seat]
        # Progress falls only to home base, and each fall is in a loss. A piece that is lost while
        # it enters falls from home base to home base.
        entered = move == "enter" and seat == before.seat
        assert new.count(WAITING) == old.count(WAITING) + lost[seat] - entered
        gone = sorted((Counter(old) - Counter(new)).elements())
        come = sorted((Counter(new) - Counter(old)).elements())
        forward = [p for p in come if p != WAITING]
        assert len(gone) == len(come)
        if seat != before.seat:
            assert not forward
        elif forward:
            die = 1 if move == "enter" else before.die
            assert set(forward) == {int(p) + die for p in set(gone) if p + die in forward}
        # More than one own piece on a field: only where a battery entered or moved as one.
        for p in set(new) - {WAITING, home}:
            if new.count(p) > max(1, old.count(p)):
                assert before.options["batteries"]
                assert p == 0 or new.count(p) == old.count(p - before.die)


@rule_sets
def test_always_true_of_positions_and_moves(start: str) -> None:
    rng = at_random(start)
    played, _ = random_game(Oracle.from_text(start), rng, 60)
    for text in played + random_texts(start, 60):
        check_position(Oracle.from_text(text))
        if Oracle.from_text(text).over:
            continue
        for game in with_die(text):
            moves = game.legal_moves()
            assert moves  # never empty while a seat is to act
            assert ("pass" in moves) == game.options["pass_allowed"]
            for move in moves:
                check_move(game.to_text(), move, rng)


@pytest.mark.parametrize("start", [text for text in RULE_SETS if text.startswith("norske")])
def test_moves_are_all_clean_or_all_bad(start: str) -> None:
    """R28, R29, seen from outside: a bad move is one that costs an own piece."""
    kinds = Counter[bool]()
    for text in random_texts(start, 300):
        for game in with_die(text):
            bad = set()
            for move in game.legal_moves():
                if move != "pass":
                    after = Oracle.from_text(game.to_text())
                    after.play(move)
                    causes = {event[3] for event in after.events if event[0] == "loss"}
                    bad.add(bool(causes & {"protected", "own_collision"}))
            assert len(bad) <= 1
            kinds.update(bad)
    assert kinds[False]
    collides = "own_collision=illegal" not in start or "protected_start=no" not in start
    assert kinds[True] or not collides


@pytest.mark.parametrize("start", [text for text in RULE_SETS if "/B-/Y-/G-" in text])
def test_turning_the_board_turns_the_game(start: str) -> None:
    """One seat on: the same moves, events and positions, one seat on."""
    for text in random_texts(start, 100):
        for game in with_die(text):
            other = turned(game)
            assert other.legal_moves() == game.legal_moves()
            move = game.legal_moves()[0]
            battle = play_on(game, move, random.Random(1))
            other.play(move, battle)
            assert other.to_text() == turned(game).to_text()
            assert other.events == [(e[0], (e[1] + 1) % 4, *e[2:]) for e in game.events]


def turned(game: Oracle) -> Oracle:
    """The same position with every colour one seat further clockwise."""
    other = Oracle.from_text(game.to_text())
    other.set(
        {(seat + 1) % 4: pieces for seat, pieces in game.pieces.items()},
        (game.seat + 1) % 4,
        game.die,
        game.throws,
        game.sixes,
        game.turn,
        [(seat + 1) % 4 for seat in game.places],
        [(seat + 1) % 4 for seat in game.out],
    )
    return other


@rule_sets
def test_going_out(start: str) -> None:
    """R34 in random positions: nothing left in play, no more turns, the rest undisturbed."""
    if "two_colours" in start:
        pytest.skip("with two colours no seat goes out")
    rng = at_random(start)
    for text in random_texts(start, 80):
        before, game = Oracle.from_text(text), Oracle.from_text(text)
        leaver = rng.choice([s for s in game.seats if s not in game.out + game.places])
        game.remove(leaver)
        check_position(game)
        assert game.events == []
        assert game.out == [*before.out, leaver]
        assert set(game.pieces[leaver]) <= {WAITING, game.board.home}
        assert all(game.pieces[s] == before.pieces[s] for s in game.seats if s != leaver)
        if not game.over and leaver != before.seat:
            assert (game.seat, game.die, game.throws) == (before.seat, before.die, before.throws)
        assert Oracle.from_text(game.to_text()).to_text() == game.to_text()
        random_game(game, rng, 60)
        assert game.seat != leaver


@pytest.mark.parametrize(
    ("text", "odds"),
    [
        ("kombat R3/B1/Y-/G- R 5 1", (21, 5, 10)),  # in the defender's sector: net +1
        ("kombat R12/B9/Y-/G- R 4 1", (26, 4, 6)),  # in a third seat's sector: net +2
        ("kombat R0/B-/Y-/G9 R 2 1", (30, 3, 3)),  # in the attacker's sector: net +3
    ],
)
def test_battle_odds(text: str, odds: tuple[int, int, int]) -> None:
    results = Counter[int]()
    for attack in range(1, 7):
        for defence in range(1, 7):
            game = Oracle.from_text(text)
            game.play(game.legal_moves()[0], (attack, defence))
            losers = [seat for _, seat, _, _ in game.events]
            results[1 if len(losers) == 2 else 0 if losers != [0] else 2] += 1
    assert (results[0], results[1], results[2]) == odds


def test_boards() -> None:
    """The route of every seat: the whole lap once, never another seat's stretch."""
    for board in BOARDS.values():
        for seat in range(4):
            fields = [board.field(seat, p) for p in range(board.last_track + 1)]
            assert fields[0] == board.starts[seat]
            assert len(set(fields)) == len(fields) <= board.ring
            assert all(board.field(seat, p) is None for p in (WAITING, board.first_stretch))
        owners = Counter(board.sector_owner(field) for field in range(board.ring))
        assert set(owners.values()) == {board.ring // 4}


def test_every_option_is_in_a_rule_set() -> None:
    assert all(
        any(f"{name}=" in text for text in RULE_SETS) for name in set(DEFAULTS) - {"battles"}
    )


@pytest.mark.parametrize(
    "text",
    [
        "norske R3/B0/Y-/G- R 3 2",  # two throws with a piece in play
        "norske R-/B-/Y-/G- R 4 1",  # a die without a move
        "norske R-/B-/Y-/G- R - 0",
        "norske R-/B-/Y-/G- R - 4",
        "norske R20,3/B-/Y-/G- R - 1",  # not in order
        "norske R3,3/B-/Y-/G- R - 1",
        "norske R1x5/B-/Y-/G- R - 1",
        "norske R33/B-/Y-/G- R - 1",
        "norske R7/B0/Y-/G- R - 1",  # two seats on a field
        "norske RHx4/B-/Y-/G- B - 3",  # finished
        "norske RHx4/B-/Y-/G- B * 0",
        "norske R3/B-/Y-/G- R * 0",
        "norske R3/B-/Y-/G- R - 1 out=R",
        "norske R-/B-/Y-/G- R - 3 out=R",
        "norske R-/B-/Y-/G- R - 3 places=B",
        "norske[pass_allowed=no] R-/B-/Y-/G- R - 3",  # the preset's own value
        "norske R-/B- Y - 3",
        "norske R- R - 3",
        "kimble R3x2/B-/Y-/G- R - 1",
        "kimble RH/B-/Y-/G- R - 1",
        "kimble[max_sixes=2] R-/B-/Y-/G- R - 1 sixes=2",
        "kimble[max_turns=2] R3/B-/Y-/G- R 1 1 turn=2",
        "kimble[play_for_places=yes] R28,29,30,31/B-/Y-/G- B - 1",
        "kimble[two_colours=yes] R28,29,30,31/B-/Y28,29,30,31/G- B - 1",
        "kimble[two_colours=yes] R-/B-/Y- R - 1",
        "kimble[play_for_places=yes,two_colours=yes] R-/B-/Y-/G- R - 1",
        "kombat[batteries=yes] R-/B-/Y-/G- R - 1",
        "kombat[protected_start=yes] R-/B-/Y-/G- R - 1",
        "kombat[own_collision=mover] R-/B-/Y-/G- R - 1",
        "norske[two_colours=yes] R-/B-/Y-/G- R - 3",
        "kimble[colour=red] R-/B-/Y-/G- R - 1",
        "ludo R-/B-/Y-/G- R - 1",
        "",
    ],
)
def test_faulty_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Oracle.from_text(text)


def test_untracked_counters_are_kept() -> None:
    """Sixes and turns that come in without their option stay as they are."""
    game = Oracle.from_text("kimble R3/B-/Y-/G- R - 1 sixes=2 turn=9")
    game.throw(6)
    game.play("3-9")
    assert game.to_text() == "kimble R9/B-/Y-/G- R - 1 sixes=2 turn=9"
    game.throw(1)
    game.play("pass")
    assert game.to_text() == "kimble R9/B-/Y-/G- B - 1 sixes=2 turn=9"


def test_misuse_is_refused_and_changes_nothing() -> None:
    game = Oracle.from_text("kombat R3/B1/Y-/G- R - 1")
    with pytest.raises(ValueError, match="not a die"):
        game.throw(7)
    with pytest.raises(ValueError, match="not legal"):
        game.play("3-8")
    game.throw(5)
    text = game.to_text()
    with pytest.raises(ValueError, match="waiting"):
        game.throw(5)
    with pytest.raises(ValueError, match="not legal"):
        game.play("enter")
    with pytest.raises(ValueError, match="battle dice"):
        game.play("3-8")
    with pytest.raises(ValueError, match="battle dice"):
        game.play("pass", (1, 1))
    with pytest.raises(ValueError, match="not a die"):
        game.play("3-8", (1, 0))
    assert game.to_text() == text


def test_ranking_with_places_and_seats_that_went_out() -> None:
    game = Oracle.from_text("norske[play_for_places=yes] R3/BHx4/Y-/G5 R - 1 places=B out=Y")
    game.remove(3)
    assert game.over
    assert game.winner == 1
    assert game.ranking() == [1, 0, 3, 2]
