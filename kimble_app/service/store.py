"""Games in a database: SQLite by default, PostgreSQL by URL. Written through SQLAlchemy 2.

What a call of :meth:`Store.append` has returned from is on the disk: SQLite runs with
``synchronous=FULL`` in WAL mode, PostgreSQL with its own ``synchronous_commit=on``. One transaction
holds the events of a request, the game's new standing and the answer to a repeated request: all of
them are there after a crash, or none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError

from kimble_app.service.settings import SettingsError

SCHEMA = "1"
_meta = sa.MetaData()
about = sa.Table(
    "kimble_about",
    _meta,
    sa.Column("key", sa.String(40), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
games = sa.Table(
    "kimble_games",
    _meta,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("secret", sa.String(64), nullable=False),  # of the dice, hex
    sa.Column("status", sa.String(10), nullable=False, index=True),
    sa.Column("waits", sa.String(10), nullable=False),  # for a bot, or for a person
    sa.Column("last", sa.Integer, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("touched", sa.Float, nullable=False),
)
tokens = sa.Table(
    "kimble_tokens",
    _meta,
    sa.Column("game", sa.ForeignKey("kimble_games.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("role", sa.String(10), primary_key=True),  # a letter of a chair, invite or watch
    sa.Column("digest", sa.String(64), nullable=False),  # SHA-256: a stolen backup opens no game
)
events = sa.Table(
    "kimble_events",
    _meta,
    sa.Column("game", sa.ForeignKey("kimble_games.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
requests = sa.Table(
    "kimble_requests",
    _meta,
    sa.Column("game", sa.ForeignKey("kimble_games.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("role", sa.String(10), primary_key=True),
    sa.Column("request", sa.String(100), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),  # of what was asked
    sa.Column("first", sa.Integer, nullable=False),  # the events that it led to
    sa.Column("last", sa.Integer, nullable=False),
)


class MovedError(Exception):
    """Another process has written to the game meanwhile: read it again."""


class Store:
    """The database.

    Args:
        url: of SQLAlchemy.

    Raises:
        SettingsError: it cannot be opened, or is of another version.
    """

    def __init__(self, url: str) -> None:
        self._writing = Lock()  # SQLite has one writer; waiting here is fairer than waiting there
        try:
            address = sa.make_url(url)
            self.sqlite = address.get_backend_name() == "sqlite"
            if self.sqlite and address.database in (None, "", ":memory:"):
                raise SettingsError(
                    "database: SQLite needs a file: games in memory are not durable"
                )
            self._engine = _sqlite(address) if self.sqlite else _postgresql(address)
            self._set_up()
        except (SQLAlchemyError, OSError, ModuleNotFoundError) as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SettingsError(f"database {_shown(url)}: {text}") from error

    def _set_up(self) -> None:
        try:
            _meta.create_all(self._engine)
        except (IntegrityError, OperationalError):
            _meta.create_all(self._engine)  # another process was making the same tables
        with self._writing, self._write() as link:
            found = link.scalar(sa.select(about.c.value).where(about.c.key == "schema"))
            if found is None:
                link.execute(about.insert().values(key="schema", value=SCHEMA))
        if found not in (None, SCHEMA):
            raise SettingsError(f"the database is of version {found}; this program knows {SCHEMA}")

    def _write(self) -> Any:
        return self._engine.execution_options(kimble_write=True).begin()

    # ------------------------------------------------------------------------------------- writing

    def create(
        self, game: str, secret: bytes, made: Sequence[Mapping[str, Any]], status: str, waits: str,
        digests: Mapping[str, str], request: tuple[str, str, str] | None = None,
    ) -> None:  # fmt: skip
        """Store a new game, its first events and the digests of its tokens, by role.

        Args:
            request: as for :meth:`append`.

        Raises:
            MovedError: there is a game of this id.
        """
        now = time.time()
        row = {"id": game, "secret": secret.hex(), "status": status, "waits": waits,
               "last": made[-1]["n"], "created": now, "touched": now}  # fmt: skip
        try:
            with self._writing, self._write() as link:
                link.execute(games.insert().values(**row))
                link.execute(tokens.insert(), _token_rows(game, digests))
                link.execute(events.insert(), _event_rows(game, made, now))
                _note_request(link, game, request, made)
        except IntegrityError as error:
            raise MovedError(game) from error

    def append(
        self, game: str, made: Sequence[Mapping[str, Any]], status: str, waits: str,
        digests: Mapping[str, str] | None = None,
        request: tuple[str, str, str] | None = None,
    ) -> None:  # fmt: skip
        """Store what happened in a game; when this returns it is on the disk.

        Args:
            game: its id.
            made: events, numbered on from those that are stored.
            status, waits: how the game stands after them.
            digests: new tokens, by role.
            request: (role, id, digest) of the request that led to them.

        Raises:
            MovedError: the game has moved on meanwhile. Nothing is stored.
        """
        now = time.time()
        first, last = made[0]["n"], made[-1]["n"]
        change = (
            games.update()
            .where(games.c.id == game, games.c.last == first - 1)
            .values(status=status, waits=waits, last=last, touched=now)
        )
        try:
            with self._writing, self._write() as link:
                if link.execute(change).rowcount != 1:
                    raise MovedError(game)
                link.execute(events.insert(), _event_rows(game, made, now))
                if digests:
                    link.execute(tokens.insert(), _token_rows(game, digests))
                _note_request(link, game, request, made)
        except IntegrityError as error:
            raise MovedError(game) from error

    def forget(self, before: float) -> int:
        """Delete games that nobody has touched since a time of ``time.time()``; return how many."""
        old = sa.select(games.c.id).where(games.c.touched < before)
        with self._writing, self._write() as link:
            for table in (requests, events, tokens):
                link.execute(table.delete().where(table.c.game.in_(old)))
            return int(link.execute(games.delete().where(games.c.touched < before)).rowcount)

    # ------------------------------------------------------------------------------------- reading

    def secret(self, game: str) -> bytes | None:
        """Return the secret of the dice of a game, None if there is no such game."""
        with self._engine.connect() as link:
            found = link.scalar(sa.select(games.c.secret).where(games.c.id == game))
        return None if found is None else bytes.fromhex(found)

    def last(self, game: str) -> int | None:
        """Return the number of the last event of a game, None if there is no such game."""
        with self._engine.connect() as link:
            return link.scalar(sa.select(games.c.last).where(games.c.id == game))

    def events(self, game: str, after: int = 0, most: int | None = None) -> list[dict[str, Any]]:
        """Return the events of a game numbered above ``after``, in order, ``most`` of them."""
        query = (
            sa.select(events.c.body)
            .where(events.c.game == game, events.c.n > after)
            .order_by(events.c.n)
        )
        with self._engine.connect() as link:
            rows = link.scalars(query if most is None else query.limit(most)).all()
        return [json.loads(body) for body in rows]

    def digests(self, game: str) -> dict[str, str]:
        """Return the digests of the tokens of a game, by role."""
        query = sa.select(tokens.c.role, tokens.c.digest).where(tokens.c.game == game)
        with self._engine.connect() as link:
            return {row.role: row.digest for row in link.execute(query)}

    def request(self, game: str, role: str, name: str) -> tuple[str, int, int] | None:
        """Return (digest, first event, last event) of a request that was carried out, else None."""
        query = sa.select(requests.c.digest, requests.c.first, requests.c.last).where(
            requests.c.game == game, requests.c.role == role, requests.c.request == name
        )
        with self._engine.connect() as link:
            row = link.execute(query).first()
        return None if row is None else (row[0], row[1], row[2])

    def count_open(self) -> int:
        """Return how many games are not over."""
        going = games.c.status.in_(("open", "running"))  # by the index, which != cannot use
        query = sa.select(sa.func.count()).select_from(games).where(going)
        with self._engine.connect() as link:
            return int(link.scalar(query) or 0)

    def waiting_for_bots(self) -> list[str]:
        """Return the games in which it is the turn of a bot: a crash may have stopped it."""
        query = sa.select(games.c.id).where(games.c.waits == "bot", games.c.status == "running")
        with self._engine.connect() as link:
            return list(link.scalars(query))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _sqlite(address: sa.URL) -> sa.Engine:
    engine = sa.create_engine(address, connect_args={"timeout": 20}, pool_size=6, max_overflow=20)

    @sa.event.listens_for(engine, "connect")
    def _prepare(link: Any, record: Any) -> None:
        link.isolation_level = None  # the driver begins nothing by itself; see below
        for line in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            link.execute(f"PRAGMA {line}")

    @sa.event.listens_for(engine, "begin")
    def _begin(link: sa.Connection) -> None:
        write = link.get_execution_options().get("kimble_write")
        link.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _postgresql(address: sa.URL) -> sa.Engine:
    if address.drivername == "postgresql":
        address = address.set(drivername="postgresql+psycopg")
    return sa.create_engine(address, pool_size=6, max_overflow=20, pool_pre_ping=True)


def _shown(url: str) -> str:
    """Return a URL without its password."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except SQLAlchemyError:
        return "of this URL"


def _token_rows(game: str, digests: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"game": game, "role": role, "digest": text} for role, text in digests.items()]


def _note_request(
    link: sa.Connection, game: str, request: tuple[str, str, str] | None,
    made: Sequence[Mapping[str, Any]],
) -> None:  # fmt: skip
    """Keep (role, id, digest) of a request with the events that it led to."""
    if request is not None:
        role, name, digest = request
        row = {"game": game, "role": role, "request": name, "digest": digest,
               "first": made[0]["n"], "last": made[-1]["n"]}  # fmt: skip
        link.execute(requests.insert().values(**row))


def _event_rows(game: str, made: Sequence[Mapping[str, Any]], now: float) -> list[dict[str, Any]]:
    return [
        {"game": game, "n": event["n"], "body": json.dumps(event, ensure_ascii=False), "at": now}
        for event in made
    ]
