"""Dice that anybody can check afterwards: commit, then reveal.

When a game is created the service draws a secret of 32 bytes and tells its SHA-256, the
*commitment*: from then on it cannot choose another. Every seat may then give a *nonce*, any text,
before the game begins: so the service could not choose the dice either. When the game is over the
secret is told. With it everybody can repeat every throw:

* ``mixed`` = SHA-256 of the nonces as a JSON list of [letter, nonce], in the order of seats,
  written without blanks, UTF-8, as hex digits
* number of a draw = first 8 bytes, big-endian, of HMAC-SHA256(secret, ``mixed|label``)
* the label of the n-th throw (from 0) of seat R is ``throw|R|n``; of its n-th attack in a battle
  ``battle|R|n``; the start of the game is drawn with ``start``
* uniform die: 1 + number * 6 // 2**64; battle dice: number * 36 // 2**64 is
  6 * (attacker - 1) + (defender - 1). With the popomatic die the chances of
  ``Game.chance_outcomes`` and ``Game.battle_outcomes`` are laid end to end instead
* the start: ``Game(rules, seed=number)`` says who begins, starter dice included

A throw's number depends on its seat and on how many throws that seat has made, so nobody's
decisions move another's dice, and a throw that was taken back falls the same way again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import KimbleError
from kimble_env.game import Game
from kimble_env.notation import GameRecord, RecordedRemoval, format_position, read_record
from kimble_env.rules import Rules, find_rules

FAIR_FORMAT = "kimble-fair-game/1"
SECRET_BYTES = 32
_WHOLE = 1 << 64


class DiceError(KimbleError):
    """Dice that are not those of the secret, or a proof that cannot be read."""


def new_secret() -> bytes:
    """Return a secret that nobody can guess."""
    return secrets.token_bytes(SECRET_BYTES)


def commitment(secret: bytes) -> str:
    """Return what is told at the start: the SHA-256 of the secret, as hex digits."""
    return hashlib.sha256(secret).hexdigest()


class Dice:
    """The dice of one game.

    Args:
        secret: 32 bytes.
        nonces: what the players mixed in, by seat; "" for nothing.
    """

    def __init__(self, secret: bytes, nonces: Mapping[int, str]) -> None:
        pairs = [[SEAT_LETTERS[seat], nonces[seat]] for seat in sorted(nonces)]
        text = json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))
        self._mixed = hashlib.sha256(text.encode()).hexdigest()
        self._secret = secret

    def number(self, label: str) -> int:
        """Return the number 0..2**64-1 of a draw."""
        text = f"{self._mixed}|{label}".encode()
        digest = hmac.new(self._secret, text, hashlib.sha256).digest()
        return int.from_bytes(digest[:8], "big")

    def start(self, rules: Rules) -> Game:
        """Return the game at its start."""
        return Game(rules, seed=self.number("start"))

    def throw(self, game: Game, n: int) -> int:
        """Return the die of the n-th throw (from 0) of the seat that is to throw."""
        number = self.number(f"throw|{SEAT_LETTERS[game.seat]}|{n}")
        if game.rules.die == "uniform":
            return 1 + number * 6 // _WHOLE
        return _pick(game.chance_outcomes, number)

    def battle(self, game: Game, move: str, n: int) -> tuple[int, int]:
        """Return the dice (attacker, defender) of the n-th battle (from 0) of an attacker."""
        number = self.number(f"battle|{SEAT_LETTERS[game.seat]}|{n}")
        if game.rules.die == "uniform":
            cell = number * 36 // _WHOLE
            return 1 + cell // 6, 1 + cell % 6
        return _pick(game.battle_outcomes(move), number)


def _pick(outcomes: Sequence[tuple[Any, float]], number: int) -> Any:
    """Return the outcome in whose stretch of 0..1 the number lies."""
    x, end = number / _WHOLE, 0.0
    for outcome, chance in outcomes:
        end += chance
        if x < end:
            return outcome
    return outcomes[-1][0]  # the chances add up to 1 but for rounding


# -------------------------------------------------------------------------------------- checking


def read_fair_game(text: str) -> dict[str, Any]:
    """Read what ``GET /v1/games/ID/record`` gives.

    Raises:
        DiceError: it is something else.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DiceError(f"not a record of the service: no JSON ({error})") from None
    if not isinstance(data, dict) or data.get("format") != FAIR_FORMAT:
        raise DiceError(f"not a record of the service: its format must be {FAIR_FORMAT!r}")
    dice = data.get("dice")
    good = isinstance(dice, dict) and isinstance(dice.get("nonces"), dict)
    if not good or not isinstance(data.get("record"), list):
        raise DiceError("the record of the service lacks its dice or its lines")
    return data


def check_fair_game(data: Mapping[str, Any], told: str | None = None) -> dict[str, Any]:
    """Check every die of a finished game against the secret that was told at its end.

    Args:
        data: from :func:`read_fair_game`.
        told: the commitment that a player wrote down at the start; None takes the record's word.

    Returns:
        ``{"throws", "battles", "commitment"}``: how many dice were checked.

    Raises:
        DiceError: the first die, or the start, that is not what the secret says.
        NotationError: a record that does not follow the rules.
    """
    dice = data["dice"]
    secret = _read_secret(dice)
    if told is not None and told.strip().lower() != commitment(secret):
        raise DiceError(f"the secret has SHA-256 {commitment(secret)}, but you were told {told}")
    record = read_record(data["record"])
    Game.from_record(record)  # the rules first: positions, moves, events, result
    rules, own = _start_rules(record, dice), Dice(secret, _read_nonces(dice))
    start = own.start(rules)
    if format_position(start.rules, start.state) != record.start:
        raise DiceError(f"the game began at {record.start!r}, by its dice at {start.to_text()!r}")
    if start.starter_dice != record.starter_dice:
        raise DiceError("the dice that decided who begins are not those of the secret")
    return {"commitment": commitment(secret), **_check_throws(record, own)}


def _read_secret(dice: Mapping[str, Any]) -> bytes:
    if dice.get("secret") is None:
        raise DiceError("the secret is not told before the game is over")
    try:
        secret = bytes.fromhex(str(dice["secret"]))
    except ValueError:
        raise DiceError("the secret must be hex digits") from None
    if commitment(secret) != dice.get("commitment"):
        raise DiceError("the secret is not the one whose SHA-256 was told at the start")
    return secret


def _read_nonces(dice: Mapping[str, Any]) -> dict[int, str]:
    for letter, nonce in dice["nonces"].items():
        if letter not in tuple(SEAT_LETTERS) or not isinstance(nonce, str):
            raise DiceError(f"nonces must be texts by letter of seat, got {letter!r}: {nonce!r}")
    return {SEAT_LETTERS.index(letter): nonce for letter, nonce in dice["nonces"].items()}


def _start_rules(record: GameRecord, dice: Mapping[str, Any]) -> Rules:
    """Return the rules of a record with the seats that play, which only positions tell."""
    seats = Game.from_text(record.start).rules.seats
    return find_rules(record.rules, seats=seats)


def _check_throws(record: GameRecord, own: Dice) -> dict[str, int]:
    game = Game.from_text(record.start)
    throws, battles = [0] * 4, [0] * 4
    for n, entry in enumerate(record.entries, 1):
        if isinstance(entry, RecordedRemoval):
            raise DiceError(f"throw {n}: no seat goes out in games of the service")
        seat = game.seat
        die = own.throw(game, throws[seat])
        if die != entry.die:
            raise DiceError(f"throw {n}: the die was {entry.die}, by the secret it is {die}")
        throws[seat] += 1
        game.throw(die)
        if entry.move is None:
            continue
        battle = None
        if game.starts_battle(entry.move):
            battle = own.battle(game, entry.move, battles[seat])
            battles[seat] += 1
            if battle != entry.battle:
                raise DiceError(
                    f"throw {n}: the battle dice were {entry.battle}, by the secret they are "
                    f"{battle}"
                )
        game.play(entry.move, battle)
    return {"throws": sum(throws), "battles": sum(battles)}
