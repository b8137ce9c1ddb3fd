"""The measurements with their targets, and the command `python -m benchmarks`."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ours, peers, probes
from benchmarks.frame import (
    Figure,
    Measure,
    Row,
    Sample,
    Samples,
    Settings,
    alternate,
    as_data,
    compare,
    describe_machine,
    machine_line,
    outside_load,
    rates,
    ratios,
    say,
    table,
    write_json,
    write_text,
)

JSON = Path("bench-results/bench.json")
README = Path(__file__).with_name("README.md")
MARKS = ("<!-- table:start -->", "<!-- table:end -->")

GAMES = 8192
KIMBLE, NORSKE, KOMBAT = "kimble[pass_allowed=no]", "norske", "kombat[pass_allowed=no]"
BUSY = 0.15
"""Cores' worth of other programs' work above which a round of the thread measure is set aside."""


@dataclass(frozen=True)
class Measurement:
    """A named group of rows: what it measures in a sentence, and the function that measures."""

    name: str
    text: str
    run: Callable[[Settings], list[Row]]


def gather(
    settings: Settings, makers: Mapping[str, Callable[[], Measure]]
) -> tuple[Samples, list[str]]:
    """Set up contenders, leave out those that are not installed, and alternate the others.

    Returns the samples and a sentence for each contender left out.
    """
    measures, missing = {}, []
    for name, make in makers.items():
        say(f"    setting up {name}")
        try:
            measures[name] = make()
        except ImportError as error:
            hint = "" if ours_lacks(error) else "; pip install 'kimble-rl[bench,train]'"
            missing.append(f"{name} not measured, {error.name} is missing{hint}")
            say(f"    {missing[-1]}")
    return alternate(measures, settings.rounds), missing


def ours_lacks(error: ImportError) -> bool:
    """Whether it is our own package that lacks something, and not a peer that is not installed."""
    return (error.name or "").startswith("kimble_env")


def playouts(settings: Settings) -> list[Row]:
    """Throws per CPU second of random games, beside OpenSpiel's C++."""
    games = settings.sized(1000)
    makers = {"OpenSpiel": lambda: peers.openspiel_playouts(games)}
    for spec in (KIMBLE, NORSKE, KOMBAT):
        makers[spec] = lambda spec=spec: ours.playouts(spec, 5 * games)
    samples, missing = gather(settings, makers)
    note = "; ".join(missing)
    rows = [
        compare(
            f"playouts {spec}",
            samples,
            spec,
            "OpenSpiel",
            "throws",
            target=10 if spec == KIMBLE else 5,
            goal=15 if spec == KIMBLE else 7.5,
            note=note,
        )
        for spec in (KIMBLE, NORSKE, KOMBAT)
    ]
    rows += [
        compare(f"{spec} beside kimble", samples, spec, KIMBLE, "throws", target=0.5)
        for spec in (NORSKE, KOMBAT)
    ]
    return rows


def vector(settings: Settings) -> list[Row]:
    """Choices per CPU second of the vector env, one thread, beside OpenSpiel's Python loops."""
    throws = settings.sized(60_000)
    samples, missing = gather(
        settings,
        {
            "loop": lambda: peers.openspiel_python(throws),
            "lean": lambda: peers.openspiel_python_lean(throws),
            "arrays": lambda: peers.openspiel_python(throws, arrays=True),
            "ours": lambda: ours.vector_loop(GAMES, settings.sized(60)),
        },
    )
    note = "; ".join(missing)
    names = {
        "loop": "vector / OpenSpiel loop",
        "lean": "vector / its leanest loop",
        "arrays": "vector / loop with arrays",
    }
    return [
        compare(name, samples, "ours", peer, "choices", target=25, note=note)
        for peer, name in names.items()
    ]


def threads(settings: Settings) -> list[Row]:
    """Two threads beside one, in wall time; rounds disturbed by other programs are set aside.

    Many short rounds, so that some of them meet a quiet moment.
    """
    rounds = 5 * settings.rounds
    measures = {
        count: ours.vector_loop(GAMES, settings.sized(30), threads=count, wall=True)
        for count in (1, 2)
    }
    quiet: list[tuple[Sample, Sample]] = []
    loud: list[tuple[Sample, Sample]] = []
    for turn in range(-3, rounds):
        with outside_load() as load:
            pair = measures[1](), measures[2]()
        if turn >= 0:
            (loud if load and load[0] > BUSY else quiet).append(pair)
    say(f"    {len(quiet)} of {rounds} rounds undisturbed by other programs")
    enough = len(quiet) >= min(5, rounds)
    one, two = zip(*(quiet if enough else quiet + loud), strict=True)
    note = f"wall time; {len(quiet)} of {rounds} rounds undisturbed"
    if not enough:
        note += ", so all were taken: not to be trusted, measure on an idle machine"
    return [
        Row(
            "vector, two threads / one",
            "choices/s",
            rates(two, "choices"),
            rates(one, "choices"),
            ratios(two, one, "choices"),
            target=1.7,
            note=note,
        )
    ]


def aec(settings: Settings) -> list[Row]:
    """Steps per CPU second of the documented AEC loop, beside PettingZoo's connect_four."""
    games = settings.sized(300)
    samples, missing = gather(
        settings,
        {
            "connect_four env": lambda: peers.connect_four(games),
            "connect_four raw_env": lambda: peers.connect_four(games, raw=True),
            "env": lambda: ours.aec(settings.sized(60)),
            "raw_env": lambda: ours.aec(settings.sized(60), raw=True),
        },
    )
    note = "; ".join(missing)
    return [
        compare(
            f"AEC {kind}()", samples, kind, f"connect_four {kind}", "steps", target=t, note=note
        )
        for kind, t in (("env", 8), ("raw_env", 4))
    ]


def ppo(settings: Settings) -> list[Row]:
    """Decisions learned from per CPU second, masked PPO, beside PettingZoo's recipe."""
    samples, missing = gather(
        settings,
        {
            "connect_four": lambda: peers.connect_four_ppo(settings.sized(4096)),
            "ours": lambda: ours.ppo(settings.sized(2)),
        },
    )
    note = "; ".join(missing)
    name = "masked PPO / connect_four recipe"
    rows = [compare(name, samples, "ours", "connect_four", "decisions", target=15, note=note)]
    if "ours" in samples:
        figure = rates(samples["ours"], "decisions")
        rows.append(
            Row("masked PPO, one core", "decisions/s", figure, value=figure, target=10_000)
        )
    return rows


def game(settings: Settings) -> list[Row]:
    """Throw-and-play pairs per CPU second of `Game`."""
    samples = alternate({"ours": ours.game_pairs(settings.sized(40_000))}, settings.rounds)
    figure = rates(samples["ours"], "pairs")
    return [Row("Game, throw + play", "pairs/s", figure, value=figure, target=100_000)]


def look_ups(settings: Settings) -> list[Row]:
    """Look-ups per CPU second in the exact tables of 2 to 4 pieces, random positions in a batch."""
    rows = []
    for pieces in (2, 3, 4):
        name = f"exact look-ups, {pieces} pieces"
        try:
            measure = ours.look_ups(pieces, settings.sized(400_000))
        except FileNotFoundError as error:
            rows.append(Row(name, "look-ups/s", note=str(error)))
            continue
        figure = rates(alternate({"ours": measure}, settings.rounds)["ours"], "look-ups")
        rows.append(Row(name, "look-ups/s", figure, value=figure, target=2_000_000))
    return rows


def networks(settings: Settings) -> list[Row]:
    """Positions per second of shipped networks in ONNX Runtime, and the time of one; wall time."""
    rows = []
    for name in ("kimble-2p", "kimble-4p", "norske-2p", "norske-4p"):
        measures = {
            "one": ours.network(name, 4096, settings.sized(30)),
            "two": ours.network(name, 4096, settings.sized(30), threads=2),
            "single": ours.network(name, 1, settings.sized(2000)),
        }
        samples = alternate(measures, settings.rounds)
        for kind, words in (("one", "4,096, one thread"), ("two", "4,096, two threads")):
            figure = rates(samples[kind], "positions")
            row = f"{name}, {words}"
            rows.append(Row(row, "positions/s", figure, value=figure, target=1_000_000))
        single = Figure.of([1e6 / taken.rate("positions") for taken in samples["single"]])
        rows.append(
            Row(f"{name}, one position", "µs", single, value=single, target=100, at_most=True)
        )
    return rows


def imports(settings: Settings) -> list[Row]:
    """`from kimble_env import Game` beside `import numba`, in CPU seconds."""
    measures = {"ours": probes.import_time("kimble_env"), "numba": probes.import_time("numba")}
    samples = alternate(measures, settings.rounds)
    seconds = {name: [s.seconds for s in taken] for name, taken in samples.items()}
    ratio = [a / b for a, b in zip(seconds["ours"], seconds["numba"], strict=True)]
    return [
        Row(
            "import Game / import numba",
            "s",
            Figure.of(seconds["ours"]),
            Figure.of(seconds["numba"]),
            Figure.of(ratio),
            target=2,
            at_most=True,
        )
    ]


def compiling(settings: Settings) -> list[Row]:
    """The first compile, with an empty cache, in CPU seconds; stderr must announce it."""
    rows, told = [], []
    for what, name in (("game", "first compile, Game"), ("all", "first compile, all")):
        cpu, wall, announced = probes.first_compile(what)
        say(f"    {name}: {cpu:.1f} s of CPU, {wall:.1f} s of wall time")
        figure = Figure.of([cpu])
        rows.append(Row(name, "s", figure, value=figure, target=30, at_most=True))
        told.append(float(announced))
    announcements = Figure.of([min(told)])
    return [*rows, Row("first compile announced", "1 = yes", value=announcements, target=1)]


def memory(settings: Settings) -> list[Row]:
    """Memory of the vector env beyond the imports, and what a step allocates."""
    peak = Figure.of([probes.memory(GAMES)["beyond"]])
    step = probes.allocations(GAMES)
    beyond, count = Figure.of([step["beyond_kb"]]), Figure.of([step["numba_allocations"]])
    returned = f"a step returns arrays of {step['returned_kb']:.0f} kB"
    return [
        Row("vector, peak memory", "MB", peak, value=peak, target=100, at_most=True),
        Row(
            "step, beyond its arrays",
            "kB",
            beyond,
            value=beyond,
            target=16,
            at_most=True,
            note=f"{returned}; the target leaves room for Python's own small objects",
        ),
        Row(
            "step, numba allocations",
            "count",
            count,
            value=count,
            target=100,
            at_most=True,
            note=f"array arguments handed to compiled code, whatever the {GAMES} games",
        ),
    ]


MEASUREMENTS = [
    Measurement("playouts", "random games in compiled code / OpenSpiel's C++ maedn", playouts),
    Measurement("vector", "vector env, one thread / OpenSpiel's Python loop", vector),
    Measurement("threads", "vector env, two threads / one (wall time)", threads),
    Measurement("aec", "PettingZoo loop, env() and raw_env() / connect_four", aec),
    Measurement("ppo", "masked PPO with learning / PettingZoo's SB3 recipe", ppo),
    Measurement("game", "Game: throw and play pairs per second", game),
    Measurement("lookups", "values of random positions from the exact tables", look_ups),
    Measurement("networks", "shipped networks in ONNX Runtime, batches and one by one", networks),
    Measurement("imports", "from kimble_env import Game / import numba", imports),
    Measurement("compiling", "seconds of the first compile, cache empty", compiling),
    Measurement("memory", "peak memory of the vector env, allocations of a step", memory),
]


def measure(names: list[str], settings: Settings) -> list[Row]:
    """Run the named measurements; one that cannot run leaves a row that says why."""
    rows: list[Row] = []
    for measurement in MEASUREMENTS:
        if measurement.name not in names:
            continue
        say(f"{measurement.name}: {measurement.text}")
        start = time.perf_counter()
        try:
            rows += measurement.run(settings)
        except Exception as error:
            message = re.sub(r" \([^)]*\)$", "", str(error))  # no paths of this machine
            why = f"not measured: {type(error).__name__}: {message}"
            say(f"    {why}")
            rows.append(Row(measurement.name, "", note=why))
        say(f"    done in {time.perf_counter() - start:.0f} s")
    return rows


def update_readme(text: str) -> None:
    """Put a table between the marks of README.md."""
    readme = README.read_text(encoding="utf-8")
    head, rest = readme.split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    write_text(README, f"{head}{MARKS[0]}\n```text\n{text}\n```\n{MARKS[1]}{tail}")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    names = "\n".join(f"  {m.name:<10} {m.text}" for m in MEASUREMENTS)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure speed and memory beside peers, all in the same run.\n"
        "The table goes to stdout, progress to stderr, the JSON to a file.",
        epilog=f"measurements:\n{names}\n\nexamples:\n"
        "  python -m benchmarks                      everything, some minutes\n"
        "  python -m benchmarks --quick              a rough look, under a minute\n"
        "  python -m benchmarks --only playouts aec  two measurements\n"
        "  python -m benchmarks --strict             exit code 1 if a target is missed\n\n"
        "Rates are medians over alternated runs, in CPU seconds; `value` is the median of the\n"
        "ratios taken round by round. benchmarks/README.md says what exactly is measured.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = [m.name for m in MEASUREMENTS]
    parser.add_argument("--only", nargs="+", choices=known, metavar="NAME", help="only these")
    parser.add_argument("--quick", action="store_true", help="3 short rounds: rough figures")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of alternated runs (9)")
    parser.add_argument(
        "--json", type=Path, default=JSON, metavar="OUT", help=f"the JSON file ({JSON})"
    )
    parser.add_argument(
        "--update-readme", action="store_true", help="put the table into benchmarks/README.md"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit code 1 if a target is missed or a measurement failed",
    )
    options = parser.parse_args(arguments)
    if options.update_readme and (options.only or options.quick):
        parser.error("--update-readme wants the whole measurement, without --only and --quick")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, write the JSON; return the exit code."""
    options = parse(arguments)
    settings = Settings(rounds=3, size=0.2) if options.quick else Settings()
    settings.rounds = options.rounds or settings.rounds
    machine = describe_machine()
    say(machine_line(machine))
    with outside_load() as load:
        rows = measure(options.only or [m.name for m in MEASUREMENTS], settings)
    machine["other_programs_cores"] = load[0] if load else None
    text = f"{table(rows)}\n\n{machine['date']}: {machine_line(machine)}"
    print(text)
    write_json(options.json, as_data(rows, machine, settings))
    say(f"JSON written to {options.json}")
    if options.update_readme:
        update_readme(text)
    missed = any(row.verdict == "missed" or row.value is None for row in rows)
    return 1 if options.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
