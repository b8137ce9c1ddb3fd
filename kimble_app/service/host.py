"""All games of the service: who may do what, one at a time in each game, stored, and told on.

A request becomes events of its table, these are stored in one transaction, and only then is it
answered and are listeners told. If storing fails the table is forgotten and read anew from what is
stored. A request with an id that has been carried out already is answered again and does nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock, RLock
from typing import Any

from kimble_app.api.errors import ApiError, about
from kimble_app.api.specs import Access, kind_of
from kimble_app.service.metrics import Metrics
from kimble_app.service.store import MovedError, Store
from kimble_app.service.table import OVER, Chair, Table
from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import KimbleError
from kimble_env.rules import find_rules

LOG = logging.getLogger("kimble.service")
INVITE, WATCH = "invite", "watch"
CREATED, JOINED = "created", "joined"
"""Under which a creation and a join are kept; the tokens come of their ids, which are not kept."""
BOT_EVENTS = 40  # events of bots that one transaction holds, and a few
KEPT_TABLES = 2_000
QUEUED_EVENTS = 1_000  # a listener that is further behind must connect again
_QUICK = ("random", "weights", "heuristic", "net", "exact")


@dataclass
class Entry:
    """A game in memory: its table, the digests of its tokens, and who listens to its events."""

    table: Table
    digests: dict[str, str]
    lock: RLock = field(default_factory=RLock)
    listeners: set[asyncio.Queue[Any]] = field(default_factory=set)  # of the event loop


class Host:
    """The games.

    Args:
        store: where they are kept.
        access: which agents clients may name as bots.
        metrics: where it counts.
        most: games going on at most.

    Attributes:
        loop: the event loop on which listeners are told; None tells nobody.
    """

    def __init__(self, store: Store, access: Access, metrics: Metrics, most: int = 10_000) -> None:
        self.store, self.access, self.metrics, self.most = store, access, metrics, most
        self.loop: asyncio.AbstractEventLoop | None = None
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._lock, self._creating = Lock(), Lock()
        self._counting = Lock()
        self._bots = ThreadPoolExecutor(1, thread_name_prefix="kimble-bots")
        self._count_open()

    def _count_open(self) -> int:
        """Count the games going on, anew: other processes begin and end some too."""
        with self._counting:
            found = self.store.count_open()
            self.metrics.games.set(found)
        return found

    def resume(self) -> None:
        """Let bots go on where the service was stopped."""
        for game in self.store.waiting_for_bots():
            self._bots.submit(self._drive, game)

    def forget(self, before: float) -> int:
        """Delete games that nobody has touched since a time of ``time.time()``; return how many."""
        gone = self.store.forget(before)
        if gone:
            with self._lock:
                entries = list(self._entries)
            for game in entries:
                if self.store.last(game) is None:
                    self._drop(game)
            self._count_open()
        return gone

    def close(self) -> None:
        """Let the bots finish the move they are at."""
        self._bots.shutdown(wait=True, cancel_futures=True)

    # ---------------------------------------------------------------------------- what clients ask

    def create(self, body: Any) -> dict[str, Any]:
        """Set a game up; return a ``CreateAnswer``. ``body`` is a ``CreateRequest``.

        Raises:
            ApiError: rules or bots that cannot be, or too many games.
        """
        with about("rules"):
            options = {"seats": body.seats} if body.seats is not None else {}
            if body.players is not None:
                options["players"] = body.players
            rules = find_rules(body.rules, **options)
        if rules.members is not None:
            raise ApiError("bad_rules", "games of the service have no members", "rules")
        bots = {
            SEAT_LETTERS.index(letter): Chair("bot", bot.name or bot.agent, bot.agent, bot.level)
            for letter, bot in (body.bots or {}).items()
        }
        make = _Names(body.request_id)
        game, keys = make("game")[:16], {INVITE: make(INVITE), WATCH: make(WATCH)}
        request = None if body.request_id is None else (INVITE, CREATED, _digest(CREATED, body))
        if request is not None and self.store.last(game) is not None:
            return self._created_before(game, keys, request)
        table = Table(game, secrets.token_bytes(32), self.access.agent)
        made = table.create(rules, bots)
        digests = {role: digest_of(token) for role, token in keys.items()}
        with self._creating:  # so that no two see the last free place
            if self.store.count_open() >= self.most:
                raise ApiError("too_many", "too many games are going on", retry_after=60)
            try:
                self.store.create(
                    game, table.secret, made, table.status, _waits(table), digests, request
                )
            except MovedError:  # the same request came twice at once
                if request is None:
                    raise
                return self._created_before(game, keys, request)
        self._count_open()
        self._count(made)
        if table.bot_waits:
            self._bots.submit(self._drive, game)
        return {**keys, "state": table.view()}

    def _created_before(
        self, game: str, keys: dict[str, str], request: tuple[str, str, str]
    ) -> dict[str, Any]:
        """Answer a request for a game that has been carried out before."""
        entry = self._entry(game)
        self._check(entry, keys[INVITE], (INVITE,))
        role, name, digest = request
        self._same(self.store.request(game, role, name), digest)
        with entry.lock:
            return {**keys, "state": entry.table.view()}

    def _same(self, found: tuple[str, int, int] | None, digest: str) -> None:
        """Refuse a request whose id was used for another; ``found`` is what is known of that."""
        if found is not None and not hmac.compare_digest(found[0], digest):
            raise ApiError("conflict", "this request_id was used for another request", "request_id")

    def join(self, game: str, token: str | None, body: Any) -> dict[str, Any]:
        """Take a chair; return a ``JoinAnswer``. ``token`` is that of the invitation.

        Raises:
            ApiError: a wrong token, or no free chair.
        """
        chair = None if body.seat is None else SEAT_LETTERS.index(body.seat)

        def ask(entry: Entry) -> dict[str, Any]:
            self._check(entry, token, (INVITE,))
            assert token is not None
            again = self._joined_before(entry, token, body)
            if again is not None:
                return {**again, "state": entry.table.view()}
            made = entry.table.join(chair, body.name, body.nonce)
            letter = made[0]["seat"]
            key = _seat_token(token, letter, body.request_id)
            made += self._quick_bots(entry.table)
            asked = (letter, JOINED, _digest(JOINED, body))
            self._keep(
                entry, made, digests={letter: digest_of(key)},
                request=None if body.request_id is None else asked,
            )
            return {"seat": letter, "token": key, "state": entry.table.view()}

        return self._with(game, ask)

    def _joined_before(self, entry: Entry, token: str, body: Any) -> dict[str, Any] | None:
        """Return the seat that this very request has taken already, None if it has not."""
        if body.request_id is None:
            return None
        for letter, digest in entry.digests.items():
            key = _seat_token(token, letter, body.request_id)
            if letter in SEAT_LETTERS and hmac.compare_digest(digest_of(key), digest):
                found = self.store.request(entry.table.id, letter, JOINED)
                self._same(found, _digest(JOINED, body))
                return {"seat": letter, "token": key}
        return None

    def act(self, game: str, token: str | None, what: str, body: Any) -> dict[str, Any]:
        """Throw, move or undo for the seat of a token; return an ``ActAnswer``.

        Raises:
            ApiError: a wrong token, not its turn, not legal, or ``after`` is not the last event.
        """

        def ask(entry: Entry) -> dict[str, Any]:
            letter = self._check(entry, token, tuple(SEAT_LETTERS))
            chair, table = SEAT_LETTERS.index(letter), entry.table
            digest = _digest(what, body)
            if body.request_id is not None:
                found = self.store.request(game, letter, body.request_id)
                if found is not None:
                    return self._again(entry, found, digest)
            if body.after is not None and body.after != table.last:
                raise ApiError("conflict", f"the game has moved on to event {table.last}", "after")
            made = _ask_table(table, chair, what, body)
            made += self._quick_bots(table)
            request = None if body.request_id is None else (letter, body.request_id, digest)
            self._keep(entry, made, request=request)
            return {"events": made, "state": table.view()}

        return self._with(game, ask)

    def _again(self, entry: Entry, found: tuple[str, int, int], digest: str) -> dict[str, Any]:
        """Answer a request that was carried out before."""
        self._same(found, digest)
        made = self.store.events(entry.table.id, found[1] - 1, found[2] - found[1] + 1)
        return {"events": made, "state": entry.table.view()}

    def look(self, game: str, token: str | None) -> dict[str, Any]:
        """Return a ``GameView``, for anybody with a token of the game.

        Raises:
            ApiError: no such game, or a wrong token.
        """

        def ask(entry: Entry) -> dict[str, Any]:
            self._check(entry, token, None)
            return entry.table.view()

        return self._with(game, ask)

    def past(self, game: str, token: str | None, after: int, most: int) -> dict[str, Any]:
        """Return the events after a number: an ``EventsAnswer``.

        Raises:
            ApiError: no such game, or a wrong token.
        """

        def ask(entry: Entry) -> dict[str, Any]:
            self._check(entry, token, None)
            return {"events": self.store.events(game, after, most), "last": entry.table.last}

        return self._with(game, ask)

    def record(self, game: str, token: str | None) -> dict[str, Any]:
        """Return a ``FairRecord``.

        Raises:
            ApiError: no such game, a wrong token, or it has not begun.
        """

        def ask(entry: Entry) -> dict[str, Any]:
            self._check(entry, token, None)
            return entry.table.fair_record()

        return self._with(game, ask)

    # ---------------------------------------------------------------------------- memory and store

    def _with(self, game: str, ask: Callable[[Entry], dict[str, Any]]) -> dict[str, Any]:
        """Do something in a game while nobody else does; if it has moved on elsewhere, again."""
        for attempt in range(3):
            entry = self._entry(game)
            with entry.lock:
                before = entry.table.last
                try:
                    return ask(entry)
                except MovedError:
                    self._drop(game)
                    if attempt == 2:
                        break
                except BaseException as error:
                    if entry.table.last != before:  # took effect here, but is not stored
                        self._drop(game)
                    elif isinstance(error, ApiError) and self.store.last(game) != before:
                        self._drop(game)  # refused for what another process has changed
                        if attempt < 2:
                            continue
                    raise
        raise ApiError("conflict", "the game is busy elsewhere: try again", retry_after=1)

    def _entry(self, game: str) -> Entry:
        """Return a game, read from the store if it is not in memory.

        Raises:
            ApiError: there is none.
        """
        with self._lock:
            entry = self._entries.get(game)
            if entry is not None:
                self._entries.move_to_end(game)
                return entry
        secret = self.store.secret(game)
        if secret is None:
            raise ApiError("not_found", "there is no such game")
        table = Table(game, secret, self.access.agent)
        table.replay(self.store.events(game))
        entry = Entry(table, self.store.digests(game))
        with self._lock:
            entry = self._entries.setdefault(game, entry)
            self._shrink()
        return entry

    def _shrink(self) -> None:
        """Forget games that nobody listens to, the one longest unused first."""
        if len(self._entries) <= KEPT_TABLES:
            return
        idle = next((name for name, entry in self._entries.items() if not entry.listeners), None)
        if idle is not None:
            del self._entries[idle]

    def _drop(self, game: str) -> None:
        """Forget what memory knows of a game; listeners stay with the entry that is read next."""
        with self._lock:
            old = self._entries.pop(game, None)
        if old is not None and old.listeners:
            try:
                self._entry(game).listeners.update(old.listeners)
            except Exception:  # the store is away: listeners will notice when they connect again
                LOG.exception("game %s cannot be read", game)

    def _keep(
        self, entry: Entry, made: list[dict[str, Any]], *,
        digests: Mapping[str, str] | None = None, request: tuple[str, str, str] | None = None,
    ) -> None:  # fmt: skip
        """Store what happened, then tell listeners; bots that are left go on by themselves."""
        table = entry.table
        if not made:
            return
        self.store.append(table.id, made, table.status, _waits(table), digests, request)
        entry.digests.update(digests or {})
        self._count(made)
        if table.status == OVER:
            self._count_open()
        self._tell(entry, made)
        if table.bot_waits:
            self._bots.submit(self._drive, table.id)

    def _count(self, made: list[dict[str, Any]]) -> None:
        for event in made:
            self.metrics.events.labels(event["kind"]).inc()

    def _drive(self, game: str) -> None:
        """Let bots play on, a transaction at a time."""

        def ask(entry: Entry) -> dict[str, Any]:
            self._keep(entry, entry.table.play_bots(BOT_EVENTS))
            return {}

        try:
            self._with(game, ask)
        except ApiError as error:
            LOG.error("bots of game %s stopped: %s", game, error)
        except Exception:
            LOG.exception("bots of game %s stopped", game)

    def _quick_bots(self, table: Table) -> list[dict[str, Any]]:
        """Let bots that answer at once play right here, so that a person sees their moves."""
        agents = [who.agent or "" for who in table.chairs.values() if who.kind == "bot"]
        if table.bot_waits and all(kind_of(agent) in _QUICK for agent in agents):
            try:
                return table.play_bots(BOT_EVENTS)
            except KimbleError:  # a bot's fault must not undo what a person has done
                LOG.exception("bots of game %s stopped", table.id)
        return []

    # ------------------------------------------------------------------------------ who may do what

    def _check(self, entry: Entry, token: str | None, roles: tuple[str, ...] | None) -> str:
        """Return the role of a token; it is compared with all, so time tells nothing.

        Args:
            roles: those that may do this; None for any.

        Raises:
            ApiError: no token, a wrong one, or one that may not do this.
        """
        if token is None:
            raise ApiError("no_token", "send the secret of a seat: Authorization: Bearer ...")
        given, found = digest_of(token), None
        for role, digest in entry.digests.items():
            if hmac.compare_digest(given, digest):
                found = role
        if found is None:
            raise ApiError("forbidden", "that secret does not belong to this game")
        if roles is not None and found not in roles:
            raise ApiError("forbidden", f"the secret of {found} may not do this")
        return found

    # -------------------------------------------------------------------------------- who listens

    async def listen(self, game: str, token: str | None, run: Any) -> asyncio.Queue[Any]:
        """Return a queue that gets every event from now on; None in it: connect again.

        Args:
            run: runs a function in a thread, for the store.

        Raises:
            ApiError: no such game, or a wrong token.
        """
        await run(self.look, game, token)
        queue: asyncio.Queue[Any] = asyncio.Queue(QUEUED_EVENTS)
        entry = await run(self._entry, game)
        entry.listeners.add(queue)
        self.metrics.listeners.inc()
        return queue

    def leave(self, game: str, queue: asyncio.Queue[Any]) -> None:
        """Stop listening."""
        with self._lock:
            entry = self._entries.get(game)
        if entry is not None:
            entry.listeners.discard(queue)
        self.metrics.listeners.dec()

    def _tell(self, entry: Entry, made: list[dict[str, Any]]) -> None:
        if self.loop is not None and entry.listeners:
            try:
                self.loop.call_soon_threadsafe(_give, entry, list(made))
            except RuntimeError:
                pass  # the service is stopping; listeners resume from what is stored


def _give(entry: Entry, made: list[dict[str, Any]]) -> None:
    """Put events into the queues of listeners; runs on the event loop."""
    for queue in list(entry.listeners):
        for event in made:
            if queue.full():
                entry.listeners.discard(queue)  # too slow: it must connect again
                queue.get_nowait()
                queue.put_nowait(None)
                break
            queue.put_nowait(event)


def _ask_table(table: Table, chair: int, what: str, body: Any) -> list[dict[str, Any]]:
    if what == "throw":
        return table.throw(chair)
    if what == "move":
        with about("move"):
            return table.move(chair, body.move)
    return table.undo(chair, body.agree)


def _waits(table: Table) -> str:
    return "bot" if table.bot_waits else "person"


def _digest(what: str, body: Any) -> str:
    """Return the digest of what a request asks for; its id does not count."""
    return digest_of(json.dumps([what, body.model_dump(exclude={"request_id"})]))


def digest_of(token: str) -> str:
    """Return the SHA-256 of a token, as hex digits."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


class _Names:
    """Makes the id and the tokens of a game: at random, or from a request id that is as secret."""

    def __init__(self, request: str | None) -> None:
        self._key = secrets.token_bytes(32) if request is None else request.encode()

    def __call__(self, what: str) -> str:
        return hmac.new(self._key, f"kimble {what}".encode(), hashlib.sha256).hexdigest()[:40]


def _seat_token(invite: str, letter: str, request: str | None) -> str:
    """Return the token of a seat: at random, or from the invitation and a request id."""
    if request is None:
        return secrets.token_hex(20)
    text = f"kimble seat {letter} {request}"
    return hmac.new(invite.encode(), text.encode(), hashlib.sha256).hexdigest()[:40]
