"""``python -m tests.perft --write`` renews the tables; a position and a depth are counted."""

from __future__ import annotations

import sys

from . import COLUMNS, HERE, POSITIONS, divide, perft, table


def main(arguments: list[str]) -> int:
    """Write all tables, or count one position."""
    if arguments == ["--write"]:
        for name in POSITIONS:
            path = HERE / f"{name}.txt"
            path.write_text(table(name), encoding="utf-8", newline="\n")
            print(f"wrote {path}")
        return 0
    if len(arguments) == 2 and arguments[1].isdigit():
        print(divide(arguments[0], int(arguments[1])))
        print("".join(f"{column:>12}" for column in COLUMNS))
        for row in perft(arguments[0], int(arguments[1])):
            print(row)
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
