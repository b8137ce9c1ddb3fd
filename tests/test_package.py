"""The package: what ``import kimble_env`` brings, and who knows its environments after it."""

from __future__ import annotations

import io
import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest

import kimble_env
from kimble_env._compiling_note import CompilingNote


def run(code: str) -> str:
    """Run code in a fresh Python and return what it prints; warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_game_comes_without_environments():
    heavy = ("gymnasium", "pettingzoo", "torch", "pygame", "matplotlib", "kimble_env.opponents")
    code = "import sys; from kimble_env import Game; print(*(m for m in {} if m in sys.modules))"
    assert run(code.format(heavy)) == ""


@pytest.mark.parametrize("name", kimble_env.__all__)
def test_every_public_name_is_there(name):
    assert getattr(kimble_env, name) is not None
    assert name in dir(kimble_env)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'kimble_env' has no attribute 'Ludo'"):
        kimble_env.Ludo  # noqa: B018


def test_version_is_that_of_the_distribution():
    assert kimble_env.__version__ == metadata.version("kimble-rl")


SPEC = "; print(gymnasium.spec('Kimble-v0').entry_point)"
MAKE = "; env = gymnasium.make({id!r}); print(env.unwrapped.__class__.__name__)"


@pytest.mark.parametrize(
    "code",
    [
        "import kimble_env, gymnasium" + SPEC,
        "import gymnasium, kimble_env" + SPEC,
        "import kimble_env, importlib, gymnasium; importlib.reload(kimble_env)" + SPEC,
        "import gymnasium; gymnasium.spec('CartPole-v1'); from kimble_env import Game" + SPEC,
    ],
)
def test_gymnasium_knows_the_environment_in_any_order(code):
    assert run(code) == "kimble_env.single_seat:KimbleSingleSeat"


@pytest.mark.parametrize(
    "code",
    [
        "import gymnasium" + MAKE.format(id="kimble_env:Kimble-v0"),
        "import kimble_env, gymnasium" + MAKE.format(id="Kimble-v0"),
        "import kimble_env, gymnasium" + MAKE.format(id="kimble_env:Kimble-v0"),
    ],
)
def test_gymnasium_makes_it(code):
    assert run(code) == "KimbleSingleSeat"


@pytest.mark.parametrize(
    "imports",
    [
        "import kimble_env, pettingzoo",
        "import pettingzoo, kimble_env",
        "from kimble_env import Game; import pettingzoo.classic, pettingzoo",
        "import gymnasium, kimble_env, importlib, pettingzoo; importlib.reload(kimble_env)",
    ],
)
def test_pettingzoo_makes_it_in_any_order(imports):
    pettingzoo = pytest.importorskip("pettingzoo")
    if not hasattr(pettingzoo, "make"):
        pytest.skip("this PettingZoo has no registry (it came with 1.27)")
    code = imports + "; env = pettingzoo.make('aec', 'kimble/kimble-v0', rules='norske')"
    assert run(code + "; print(env.unwrapped.__class__.__module__)").startswith("kimble_env.aec")


def test_an_older_pettingzoo_without_a_registry_is_left_alone():
    code = (
        "import sys, types; old = types.ModuleType('pettingzoo'); old.__version__ = '1.25.0';"
        "sys.modules['pettingzoo'] = old; import kimble_env; print(kimble_env.__version__)"
    )
    assert run(code) == kimble_env.__version__


def test_import_hook_leaves_modules_as_they_are():
    code = (
        "import kimble_env, gymnasium, sys; from kimble_env._registration import _WhenImported;"
        "hook = next(f for f in sys.meta_path if isinstance(f, _WhenImported));"
        "print('gymnasium' in hook.waiting, type(gymnasium.__spec__.loader).__name__)"
    )
    assert run(code) == "False SourceFileLoader"


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


def compiling(note, module, seconds, clock, inner=()):
    """Let a note hear of a function, and of those that it calls."""
    function = SimpleNamespace(__module__=module)
    told = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})
    note.on_start(told)
    for name in inner:
        compiling(note, name, seconds, clock)
    clock[0] += seconds
    note.on_end(told)


def test_compiling_is_said_and_that_it_goes_on(monkeypatch):
    clock = [0.0]
    note = CompilingNote("the cache", clock=lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    compiling(note, "numpy.linalg", 50.0, clock)
    assert sys.stderr.getvalue() == ""
    assert note.seconds == 0.0
    compiling(note, "training.td_kernel", 10.0, clock, ["kimble_env.kernel"] * 8)
    lines = sys.stderr.getvalue().splitlines()
    assert "a few minutes" in lines[0]
    assert "the cache" in lines[0]
    assert lines[1] == "kimble: compiling kimble_env.kernel; 2 functions in 20 s"
    assert len(lines) == 5
    assert (note.functions, note.seconds) == (9, 90.0)


def test_a_terminal_has_one_line_that_goes_when_all_is_compiled(monkeypatch):
    clock = [0.0]
    note = CompilingNote("the cache", clock=lambda: clock[0])
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "__stderr__", stream)
    compiling(note, "agents.net_kernel", 1.0, clock, ["kimble_env.kernel"] * 8)
    head, _, rest = stream.getvalue().partition("\n")
    assert head.startswith("kimble: compiling what this needs")
    shown = rest.split("\r\033[K")
    assert "kimble: compiling kimble_env.kernel; 3 functions in 3 s" in shown
    assert shown[-1] == ""
    monkeypatch.setattr(sys, "__stderr__", Terminal())  # a progress bar has taken the stream
    compiling(note, "agents.net_kernel", 30.0, clock, ["agents.net_kernel"])
    assert stream.getvalue().endswith(" s\n")


def test_compiling_can_be_quiet(monkeypatch):
    clock = [0.0]
    note = CompilingNote("the cache", quiet=True, clock=lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    compiling(note, "kimble_env.kernel", 60.0, clock)
    assert sys.stderr.getvalue() == ""
    assert note.seconds == 60.0
