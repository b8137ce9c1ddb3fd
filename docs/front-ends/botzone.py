"""A turn program as Botzone runs them: JSON on standard input, one JSON line on standard output.

Each turn the judge starts the program anew and gives it everything so far::

    {"requests": [{"position": "kimble R3/B0/Y-/G- R 4 1"}, ...], "responses": [...]}

The answer is ``{"response": {"move": "3-7"}, "debug": {...}}``. With ``--keep`` the program stays:
it says so after every answer, and then reads one request per line.
"""

import json
import sys

from kimble_app.api.answers import answer_move
from kimble_app.api.schema import MoveRequest

KEEP = ">>>BOTZONE_REQUEST_KEEP_RUNNING<<<"


def respond(request):
    answer = answer_move(MoveRequest(position=request["position"], agent=request.get("agent")))
    told = {"agent": answer["agent"], "ranked": answer["ranked"]}
    return {"response": {"move": answer["move"]}, "debug": told}


def main():
    turns = json.loads(sys.stdin.readline())
    print(json.dumps(respond(turns["requests"][-1])), flush=True)
    while "--keep" in sys.argv:
        print(KEEP, flush=True)
        line = sys.stdin.readline()
        if not line:
            break
        print(json.dumps(respond(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
