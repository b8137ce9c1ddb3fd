"""Who is better, and how sure are we: matches, intervals, tables."""

from evaluation.match import DEFAULT_CAP, MatchResult, play_match
from evaluation.statistics import block_bootstrap, wilson
from evaluation.table import match_json, print_table

__all__ = [
    "DEFAULT_CAP",
    "MatchResult",
    "block_bootstrap",
    "match_json",
    "play_match",
    "print_table",
    "wilson",
]
