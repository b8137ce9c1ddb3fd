"""Write ``docs/openapi.json`` from the code: ``python -m kimble_app.service.document``."""

from __future__ import annotations

import json
from pathlib import Path

from kimble_app.service.app import make_app
from kimble_env.files import write_whole

PLACE = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def main() -> None:
    """Write it."""
    text = json.dumps(make_app().openapi(), indent=1, ensure_ascii=False) + "\n"
    write_whole(PLACE, text)
    print(f"written: {PLACE}")


if __name__ == "__main__":
    main()
