"""How positions of the two-player game are numbered, without a search in either direction.

A *configuration* is the multiset of one seat's pieces. It is split in two: the set of stretch
fields that are taken (a bit mask; pieces there never leave the stretch, so masks only grow) and
the rest, which waits or stands on the ring. With n pieces off the stretch, sorted ascending as
c_1 <= ... <= c_n where waiting is -1 and ring fields are distinct, the number of the rest is::

    rank = sum over k of F(k, c_k),   F(k, c) = sum over q <= k of binomial(c, q), F(k, -1) = 0

because F(k, c) counts the rests of k pieces that all stand below field c. The rank is
colexicographic: moving a piece forward always raises it, so a sweep from high to low meets every
move's target first.

A *position* is (mask, rank) of the seat about to throw and (mask, rank) of the other seat. For
every pair of masks the table holds the full product of ranks, row = the seat about to throw. The
product includes pairs in which both seats claim one ring field. Those are no positions (about a
third of the cells for four pieces); keeping them costs space but makes the number of a position a
sum of two look-ups, and gives the solver room to keep the outcome of captures where the row is
read anyway.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np
import numpy.typing as npt

from kimble_env.rules import Rules


def rests(pieces: int, fields: int) -> int:
    """Return how many ways ``pieces`` can wait or stand on ``fields`` distinct ring fields."""
    return sum(comb(fields, k) for k in range(pieces + 1))


class Encoding:
    """The numbers of one seat's configurations and of two-seat positions (Kimble and Kombat).

    Attributes:
        pieces: pieces per seat, 1..4.
        ring: ring fields of a route (progress 0..ring-1).
        stretch: stretch fields (progress ring..ring+stretch-1).
        masks: the stretch masks with fewer than ``pieces`` bits, ascending; a *layer* is a pair.
        sizes: int64 [len(masks)], rests per mask.
        slot: int16 [2**stretch], index into ``masks``, -1 for finished, -2 for impossible.
    """

    def __init__(self, rules: Rules) -> None:
        self.pieces = rules.pieces
        self.ring = rules.board.leave + 1
        self.stretch = rules.board.stretch
        self.slot = np.full(1 << self.stretch, -2, np.int16)
        self.masks: list[int] = []
        for mask in range(1 << self.stretch):
            if mask.bit_count() < self.pieces:
                self.slot[mask] = len(self.masks)
                self.masks.append(mask)
            elif mask.bit_count() == self.pieces:
                self.slot[mask] = -1
        self.off_stretch = [self.pieces - mask.bit_count() for mask in self.masks]
        self.sizes = np.array([rests(n, self.ring) for n in self.off_stretch], np.int64)

    @cached_property
    def ranks(self) -> npt.NDArray[np.int64]:
        """F(k, c) as int64 [pieces + 1, ring + 1], column c + 1, so that waiting is column 0."""
        out = np.zeros((self.pieces + 1, self.ring + 1), np.int64)
        for k in range(1, self.pieces + 1):
            for c in range(self.ring):
                out[k, c + 1] = rests(k, c)
        return out

    @cached_property
    def block_starts(self) -> npt.NDArray[np.int64]:
        """First cell of each layer's block: int64 [masks, masks] (about to throw, other)."""
        cells = np.outer(self.sizes, self.sizes)
        starts = np.zeros(cells.size + 1, np.int64)
        np.cumsum(cells.ravel(), out=starts[1:])
        return starts[:-1].reshape(cells.shape)

    @property
    def cells(self) -> int:
        """Cells of the whole table, impossible pairs included."""
        return int(self.sizes.sum()) ** 2

    def positions(self) -> int:
        """Count the positions that can be: no shared ring field, neither seat finished.

        The two routes share all ring fields when ``leave`` is ring - 1; elsewhere a field of one
        route may lie outside the other, which :func:`count_positions` of the solver counts.
        """
        total = 0
        for a in self.off_stretch:
            for b in self.off_stretch:
                for k in range(a + 1):
                    total += comb(self.ring, k) * rests(b, self.ring - k)
        return total

    def configurations(self, slot: int) -> npt.NDArray[np.int8]:
        """Return the pieces of every configuration of a mask in order of rank: int8 [size, pieces].

        Off-stretch pieces come first, ascending, then the stretch.
        """
        n, mask = self.off_stretch[slot], self.masks[slot]
        rest = _rest_pieces(n, self.ring)
        out = np.empty((len(rest), self.pieces), np.int8)
        out[:, :n] = rest
        out[:, n:] = [self.ring + k for k in range(self.stretch) if mask >> k & 1]
        return out


@lru_cache(maxsize=16)
def _rest_pieces(pieces: int, ring: int) -> npt.NDArray[np.int8]:
    rows = [
        (-1,) * (pieces - k) + chosen
        for k in range(pieces + 1)
        for chosen in combinations(range(ring), k)
    ]
    rows.sort(key=lambda row: row[::-1])  # colexicographic
    return np.array(rows, np.int8).reshape(len(rows), pieces)


class HomeEncoding(Encoding):
    """The numbers of Norske positions: multisets of pieces, layers by pieces home.

    The n pieces that are not home, sorted ascending, get the rank ``sum over k of
    binomial(c_k + k, k)``; units may share a field, so there is no product of distinct fields. The
    attribute ``ring`` is minus the progress of home, which tells ``rank_of`` so; ``masks`` holds
    the numbers of pieces home.
    """

    def __init__(self, rules: Rules) -> None:
        self.pieces = rules.pieces
        self.fields = rules.board.leave + 1
        self.ring = -rules.board.home
        self.stretch = rules.board.stretch
        self.masks = list(range(self.pieces))
        self.slot = np.array([*self.masks, -1], np.int16)
        self.off_stretch = [self.pieces - h for h in self.masks]
        places = rules.board.home + 1  # waiting, ring, stretch
        self.sizes = np.array([comb(places + n - 1, n) for n in self.off_stretch], np.int64)

    @cached_property
    def ranks(self) -> npt.NDArray[np.int64]:
        """binomial(c + k, k) as int64 [pieces + 1, home + 1], column c + 1."""
        out = np.zeros((self.pieces + 1, 1 - self.ring), np.int64)
        for k in range(1, self.pieces + 1):
            for c in range(-self.ring):
                out[k, c + 1] = comb(c + k, k)
        return out

    def configurations(self, slot: int) -> npt.NDArray[np.int8]:
        """Return the pieces of every configuration in order of rank: int8 [size, pieces]."""
        n = self.off_stretch[slot]
        places = range(-1, -self.ring)
        rows = sorted(combinations_with_replacement(places, n), key=lambda row: row[::-1])
        out = np.full((len(rows), self.pieces), -self.ring, np.int8)
        out[:, :n] = rows
        return out

    def positions(self) -> int:
        """Count the positions that can be: no shared ring field, neither seat finished.

        Counted for two seats opposite each other, whose routes share every ring field or not at
        all alike for both.
        """
        total = 0
        for a in self.off_stretch:
            for used in range(a + 1):  # distinct ring fields that one seat stands on
                own = comb(self.fields, used) * self._ways(a, used)
                for b in self.off_stretch:
                    free = self.fields - used + 1 + self.stretch
                    total += own * comb(free + b - 1, b)
        return total

    def _ways(self, pieces: int, used: int) -> int:
        """Ways to put pieces on exactly ``used`` given fields, the stretch and home base."""
        aside = 1 + self.stretch
        return comb(pieces - used + used + aside - 1, pieces - used) if pieces >= used else 0


def encoding_of(rules: Rules) -> Encoding:
    """Return the encoding that fits the rules: with a home or with stretch slots."""
    return HomeEncoding(rules) if rules.home else Encoding(rules)
