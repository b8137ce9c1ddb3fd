"""Where the command ``kimble`` starts: says which extra is missing instead of a traceback."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; without the extra ``app`` say how to get it and end with exit code 2."""
    try:
        from kimble_app.cli import main as run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        print(
            f"error: the command kimble needs {error.name}: pip install 'kimble-rl[app]'",
            file=sys.stderr,
        )
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
