"""A client of `kimble serve` with nothing but Python's own library: python client.py [address]"""

import json
import sys
from urllib import error, request


class Kimble:
    def __init__(self, address="http://127.0.0.1:8000", key=None):
        self.address, secret = address, {"x-kimble-key": key} if key else {}
        self.headers = {"content-type": "application/json", **secret}

    def ask(self, path, **fields):
        data = json.dumps(fields).encode()
        question = request.Request(self.address + path, data, self.headers)
        try:
            with request.urlopen(question) as answer:
                return json.load(answer)
        except error.HTTPError as answer:
            raise ValueError(json.load(answer)["message"]) from None


if __name__ == "__main__":  # a whole game, every move asked for
    kimble = Kimble(*sys.argv[1:2])
    game = {"position": "kimble[pieces=1] R-/Y- R - 1", "over": False, "legal": []}
    while not game["over"]:
        here = game["position"]
        move = kimble.ask("/v1/move", position=here)["move"] if game["legal"] else None
        game = kimble.ask("/v1/play", position=here, move=move)
    print("the winner is", game["result"]["winner"])
