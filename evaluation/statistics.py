"""Intervals: how far a figure may be from the truth.

*Wilson* takes every game as an independent coin. Games of one match are not quite that: each seed
of dice is played once per rotation of the seats. The *seat-block bootstrap* draws whole blocks (all
rotations of one seed) and so keeps what they share.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from kimble_env.errors import KimbleError

Interval = tuple[float, float]


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise KimbleError(f"confidence must lie between 0 and 1, got {confidence!r}")


def wilson(wins: float, games: int, confidence: float = 0.95) -> Interval:
    """Return the Wilson score interval of a share (E. B. Wilson 1927).

    Args:
        wins: number of games won, 0..games; parts of games are allowed (endless play counts 1/n).
        games: number of games, at least 1.
        confidence: probability that the interval covers the truth, between 0 and 1.

    Returns:
        Lower and upper bound, each 0..1.

    Raises:
        KimbleError: numbers out of range.
    """
    _check_confidence(confidence)
    if games < 1 or not 0.0 <= wins <= games:
        raise KimbleError(f"wins must lie in 0..games with games at least 1, got {wins} of {games}")
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    share, part = wins / games, z * z / games
    middle = (share + part / 2.0) / (1.0 + part)
    half = z / (1.0 + part) * (share * (1.0 - share) / games + part / (4.0 * games)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


def block_bootstrap(
    scores: npt.NDArray[np.float64],
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Return the percentile interval of a mean when whole blocks are drawn again.

    Args:
        scores: float64 [blocks], the mean score of each block (all rotations of one seed of dice).
        confidence: probability that the interval covers the truth, between 0 and 1.
        resamples: draws of the whole set of blocks.
        seed: of the generator that draws; the same seed gives the same interval.

    Raises:
        KimbleError: no blocks, or numbers out of range.
    """
    _check_confidence(confidence)
    if scores.ndim != 1 or len(scores) == 0 or resamples < 1:
        raise KimbleError(
            f"expected scores [blocks] of at least one block and one resample, got "
            f"{list(scores.shape)} and {resamples}"
        )
    values, counts = np.unique(scores, return_counts=True)
    # Few different scores occur, so drawing how often each comes up is drawing the blocks.
    draws = np.random.default_rng(seed).multinomial(
        len(scores), counts / len(scores), size=resamples
    )
    means = draws @ values / len(scores)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, (tail, 1.0 - tail))
    return float(low), float(high)


def confidence_sequence(
    mean: float, variance: float, count: int, confidence: float = 0.95, tuned_for: int = 1000
) -> Interval:
    """Return an interval for a mean that may be looked at after every observation.

    All intervals of one growing sample hold *together* with this confidence, so one may stop
    whenever one likes. It is the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha,
    Kennedy and Ramdas (2021, theorem 2.2), a mixture over normal alternatives: about 1.5 times as
    wide as an interval for a sample size fixed beforehand.

    Args:
        mean: of the observations so far.
        variance: their estimated variance.
        count: how many there are, at least 1.
        confidence: probability that no interval ever misses the truth.
        tuned_for: the sample size at which the sequence is narrowest; fixed beforehand.

    Raises:
        KimbleError: numbers out of range.
    """
    _check_confidence(confidence)
    if count < 1 or variance < 0.0 or tuned_for < 1:
        raise KimbleError(
            f"count must be at least 1 and variance at least 0, got {count} and {variance}"
        )
    log_alpha = math.log(1.0 / (1.0 - confidence))
    rho2 = (2.0 * log_alpha + math.log(2.0 * log_alpha + 1.0)) / tuned_for
    spread = count * rho2 + 1.0
    half = math.sqrt(
        variance * 2.0 * spread / (count**2 * rho2) * (0.5 * math.log(spread) + log_alpha)
    )
    return mean - half, mean + half
