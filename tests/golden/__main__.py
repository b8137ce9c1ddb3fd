"""``python -m tests.golden --write`` renews the playthroughs."""

from __future__ import annotations

import sys

from . import HERE, PLAYTHROUGHS, playthrough


def main(arguments: list[str]) -> int:
    """Write all playthroughs."""
    if arguments != ["--write"]:
        print(__doc__, file=sys.stderr)
        return 2
    for name in PLAYTHROUGHS:
        path = HERE / f"{name}.txt"
        path.write_text(playthrough(name), encoding="utf-8", newline="\n")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
