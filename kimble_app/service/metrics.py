"""Figures for Prometheus, one registry for each service so that tests do not share them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """What is counted. Labels are routes and words of our own, never what a client sent."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        here = self.registry
        self.requests = Counter(
            "kimble_requests", "requests by route and status", ["route", "status"], registry=here
        )
        self.seconds = Histogram(
            "kimble_request_seconds", "time of requests", ["route"], buckets=_SECONDS, registry=here
        )
        self.refused = Counter(
            "kimble_refused", "requests turned away, by code", ["code"], registry=here
        )
        self.moves = Counter("kimble_moves", "moves decided for clients", registry=here)
        self.waiting = Gauge("kimble_work_waiting", "requests at work or waiting", registry=here)
        self.games = Gauge("kimble_games_open", "games going on", registry=here)
        self.listeners = Gauge("kimble_listeners", "WebSockets open", registry=here)
        self.events = Counter("kimble_game_events", "events of games", ["kind"], registry=here)

    def text(self) -> bytes:
        """Return all of it in the text format of Prometheus."""
        return generate_latest(self.registry)
