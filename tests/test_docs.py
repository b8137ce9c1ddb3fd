"""The documents tell the truth: generated tables are fresh, links lead somewhere, examples run."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kimble_env.rules import find_rules

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
RULES_PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- figures --------------------------------------------------------------------------------


def test_strength_in_the_readme_is_that_of_the_ladder() -> None:
    ladders = json.loads((ROOT / "docs" / "ladder.json").read_text(encoding="utf-8"))["ladders"]
    share = {}
    for ladder in ladders:
        game = (find_rules(ladder["rules"]).name, ladder["players"])
        for row in ladder["agents"]:
            share[(row["agent"], *game)] = row["alone_against"].get("random", row)
        for row in ladder["searching"]:
            if row["other"] == "random" and row["agent"].startswith("net:"):
                share["net", *game] = row
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for agent in ("cautious", "mixed", "tuned", "net"):
        cells = [
            " / ".join(f"{100.0 * share[agent, name, n]['share']:.1f}" for n in (2, 4))
            for name in ("kimble", "kombat", "norske")
        ]
        assert f"| {agent} | {' | '.join(cells)} |" in readme


# ---- generated parts and facts ---------------------------------------------------------------


def test_generated_parts_are_fresh() -> None:
    generator = load_generator()
    stale = [
        str(path.relative_to(ROOT))
        for path in generator.documents()
        if generator.renew(path.read_text(encoding="utf-8")) != path.read_text(encoding="utf-8")
    ]
    assert not stale, f"run `python docs/generate.py` to renew {stale}"


def test_every_generated_part_is_in_one_document() -> None:
    generator = load_generator()
    names = [
        match[2]
        for path in generator.documents()
        for match in generator.PART.finditer(path.read_text(encoding="utf-8"))
    ]
    assert sorted(names) == sorted(generator.PARTS)
    assert {match[2] for match in generator.PART.finditer(RULES_PAGE)} == {
        "boards",
        "options",
        "fields",
    }


def test_every_rule_number_is_explained_once_and_no_cited_one_is_missing() -> None:
    explained = re.findall(r"^\| \*\*([RL]\d+)\*\* \|", RULES_PAGE, re.MULTILINE)
    assert explained == [f"R{n}" for n in range(1, 35)] + [f"L{n}" for n in range(1, 9)]
    cited = {
        number
        for path in ROOT.glob("kimble_env/**/*.py")
        for comment in re.findall(r"#.*", path.read_text(encoding="utf-8"))
        for number in re.findall(r"\b[RL]\d+\b", comment)
    }
    assert cited <= set(explained), f"no such rule: {sorted(cited - set(explained))}"


def test_battle_odds_of_the_rules_page() -> None:
    rows = re.findall(r"^\| \+(\d) \| (\d+) \| (\d+) \| (\d+) \|", RULES_PAGE, re.MULTILINE)
    assert [int(row[0]) for row in rows] == [1, 2, 3]
    for bonus, *odds in (tuple(map(int, row)) for row in rows):
        margins = [a + bonus - d for a, d in itertools.product(range(1, 7), repeat=2)]
        counted = [sum(m > 0 for m in margins), margins.count(0), sum(m < 0 for m in margins)]
        assert odds == counted


def test_one_version_everywhere() -> None:
    import kimble_env

    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {kimble_env.__version__}\n" in citation
    latest = re.search(r"^## \[([\d.]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert latest is not None
    assert latest[1] == kimble_env.__version__


def position_rows() -> list[tuple[str, list[str]]]:
    rows = re.findall(r"^\| `(\w+ R[^`]+)` \| ([^|]+) \|", RULES_PAGE, re.MULTILINE)
    return [(text, re.findall(r"`([^`]+)`", moves)) for text, moves in rows]


@pytest.mark.parametrize(("text", "moves"), position_rows(), ids=lambda value: str(value))
def test_positions_of_the_rules_page(text: str, moves: list[str]) -> None:
    from kimble_env import Game

    assert [str(move) for move in Game.from_text(text).legal_moves] == moves


def test_the_rules_page_shows_enough_positions() -> None:
    assert len(position_rows()) >= 6


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in target or target.startswith("mailto:"):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists():
                broken.append(f"{path.relative_to(ROOT)} -> {target}")
            elif anchor and file.suffix == ".md":
                heads = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
                if anchor not in anchors:
                    broken.append(f"{path.relative_to(ROOT)} -> {target}")
    assert not broken, "\n".join(broken)


def test_files_named_in_the_documents_exist() -> None:
    named = re.compile(
        r"`((?:kimble_env|agents|evaluation|training|kimble_app|tests|docs)/[\w./-]+\.\w+)`"
    )
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in DOCUMENTS
        for name in named.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    }
    assert not missing, "\n".join(sorted(missing))


def test_the_architecture_page_lists_the_files_of_kimble_env() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    text = page.partition("## Inside `kimble_env`")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[\w.]+(?:\.py|/)`(?:, `[\w.]+`)*) \|", text, re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    files = [path.name for path in (ROOT / "kimble_env").glob("*.py") if path.name != "__init__.py"]
    assert sorted(listed) == sorted([*files, "render/"])


# ---- the examples run ------------------------------------------------------------------------


def readme_blocks() -> list[tuple[int, str, str]]:
    """Return (line of its first line, kind, text) of the README's tested blocks, in order."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return [
        (readme.count("\n", 0, match.start()) + 2, match[1], match[2])
        for match in re.finditer(
            r"^```(python|console)\n(.*?)^```", readme, re.MULTILINE | re.DOTALL
        )
    ]


def kimble_command() -> str:
    """Return the command of the environment that runs the tests."""
    beside = shutil.which("kimble", path=str(Path(sys.executable).parent))
    assert beside, "the command `kimble` is not installed beside this Python (make setup)"
    return beside


def run_console(line: int, text: str) -> None:
    commands = [part[2:] for part in text.splitlines() if part.startswith("$ ")]
    assert commands, f"README.md:{line}: a console block without a line that starts with `$ `"
    for command in commands:
        words = shlex.split(command, comments=True)
        assert words[0] == "kimble", f"README.md:{line}: only `kimble` commands are tested"
        done = subprocess.run(
            [kimble_command(), *words[1:]],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"README.md:{line}: {command}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip(), f"README.md:{line}: {command} printed nothing"


def test_the_readme_works_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a reader would: every block in order, in one folder; later ones use what earlier made."""
    from kimble_env.single_seat import KimbleSingleSeat

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(
        KimbleSingleSeat.metadata, "render_fps", 1000
    )  # no waiting between pictures
    kinds = set()
    for line, kind, text in readme_blocks():
        kinds.add(kind)
        if kind == "console":
            run_console(line, text)
        else:
            # Leading blank lines, so that a traceback names the line of the README.
            program = compile("\n" * (line - 1) + text, str(ROOT / "README.md"), "exec")
            exec(program, {"__name__": "readme"})
    assert kinds == {"python", "console"}
