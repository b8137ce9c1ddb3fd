"""What an operator of the service can set, and what is refused before it starts."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from kimble_env.errors import KimbleError

LEAST_KEY = 16
DEFAULT_DATABASE = "sqlite:///kimble-games.sqlite"


class SettingsError(KimbleError):
    """Settings that cannot be, or that would leave the service open to everybody."""


@dataclass(frozen=True)
class Settings:
    """Everything that can be set.

    Args:
        host, port: where to listen; port 0 takes any that is free.
        database: URL of SQLAlchemy: ``sqlite:///FILE`` or ``postgresql+psycopg://...``.
        key: access key that every client must send; None for none.
        insecure: serve other machines without a key, knowing what that means.
        origins: web pages that may ask from a browser, such as https://example.org.
        body: largest body of a request, bytes.
        rate, burst: requests a second that one address may go on making, and at once; 0 no limit.
        depth: deepest search that clients may ask for.
        batch: most positions in one request.
        seconds: longest time that a request may work.
        threads: threads that decide moves; another two keep games, another one searches.
        queue: requests that may wait for a thread before others are told to come back.
        games: games going on at most.
        connections: WebSockets open at most.
        keep_days: games that nobody has touched for so many days are deleted; 0 keeps all.
        agents: specs that clients may name besides the shipped ones.

    Raises:
        SettingsError: naming what cannot be.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    database: str = DEFAULT_DATABASE
    key: str | None = None
    insecure: bool = False
    origins: tuple[str, ...] = ()
    body: int = 2_000_000
    rate: float = 50.0
    burst: int = 200
    depth: int = 3
    batch: int = 10_000
    seconds: float = 10.0
    threads: int = 2
    queue: int = 200
    games: int = 10_000
    connections: int = 2_000
    keep_days: float = 0.0
    agents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        faults = [
            f"{name} must be at least {least}, got {getattr(self, name)}"
            for name, least in _LEAST.items()
            if getattr(self, name) < least
        ]
        if self.key is not None and len(self.key) < LEAST_KEY:
            faults.append(f"an access key has at least {LEAST_KEY} characters")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            faults.append("an access key has only printable ASCII characters")
        if self.port > 65535:
            faults.append(f"port must be at most 65535, got {self.port}")
        faults += [
            f"origin {origin!r} must be like https://example.org, or *"
            for origin in self.origins
            if origin != "*" and not origin.startswith(("http://", "https://"))
        ]
        if not self.database.startswith(("sqlite://", "postgresql")):
            faults.append("database must be sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME")
        if self.key is None and not self.insecure and not is_loopback(self.host):
            faults.append(
                f"host {self.host} lets other machines in, so an access key is needed "
                "(--key-file FILE or KIMBLE_KEY); --insecure serves everybody without one"
            )
        if faults:
            raise SettingsError("; ".join(faults))


_LEAST = {
    "port": 0, "body": 1000, "rate": 0, "burst": 1, "depth": 0, "batch": 1, "seconds": 0.1,
    "threads": 1, "queue": 1, "games": 1, "connections": 1,
    "keep_days": 0,
}  # fmt: skip


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host name; a name that is not known cannot."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
