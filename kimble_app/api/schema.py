"""Requests and answers of every door: the one description of their fields.

Numbers of seats are 0 red, 1 blue, 2 yellow, 3 green; letters of seats are R, B, Y, G. Positions
and moves are the texts of ``kimble_env.notation``. Answers are sent as plain dicts of these shapes:
the tests hold them to the models, so the hot path need not.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

MAX_POSITION = 600
"""Longest position text, in characters: one with every option and every piece named is shorter."""
MAX_SPEC = 2000
MAX_SEED = 2**64 - 1

Position = Annotated[
    StrictStr,
    Field(
        min_length=1,
        max_length=MAX_POSITION,
        description="a position text: rules, pieces of each seat, seat to act, die or -, throws",
        examples=["norske R3,20/B0x2/Y-/G- R 4 1"],
    ),
]
Seed = Annotated[
    StrictInt | None,
    Field(
        ge=0,
        le=MAX_SEED,
        description="of dice and of an agent's own choices; drawn, and told, if left out. JSON "
        "readers of JavaScript keep whole numbers exact up to 2**53",
    ),
]
AgentSpec = Annotated[
    StrictStr | None,
    Field(
        min_length=1,
        max_length=MAX_SPEC,
        description='an agent: one of /v1/agents, or weights:{"capture": 5}; the best that is '
        "quick under the rules if left out",
        examples=["cautious"],
    ),
]
Level = Annotated[
    StrictInt | None,
    Field(ge=1, le=10, description="1 to 10: makes the agent weaker; at full strength if left out"),
]
Die = Annotated[
    StrictInt | None,
    Field(ge=1, le=6, description="the die thrown, for a position before the throw"),
]
MoveText = Annotated[
    StrictStr,
    Field(max_length=20, description="enter, 3-8, 30-H or pass", examples=["20-24"]),
]
SeatLetter = Literal["R", "B", "Y", "G"]
Face = Annotated[StrictInt, Field(ge=1, le=6)]
Chances = Annotated[
    list[float],
    Field(
        min_length=4,
        max_length=4,
        description="the chance of each seat (red, blue, yellow, green) to win; 0 if absent",
    ),
]


class Request(BaseModel):
    """A request: unknown fields are refused, so that a slip of the pen is noticed."""

    model_config = ConfigDict(extra="forbid")


class Answer(BaseModel):
    """An answer: holds exactly these fields."""

    model_config = ConfigDict(extra="forbid")


class ErrorBody(BaseModel):
    """What went wrong."""

    code: str = Field(description="a word that does not change, such as illegal_move")
    message: str = Field(description="a sentence for people")
    field: str | None = Field(description="the field of the request that it is about")


# ----------------------------------------------------------------------------------- one position


class MoveRequest(Request):
    """Which move would an agent play here?"""

    position: Position
    die: Die = None
    agent: AgentSpec = None
    level: Level = None
    seed: Seed = None


class RankedMove(Answer):
    """A legal move and what it is worth."""

    move: MoveText
    win: Chances | None = Field(description="after the move; null if the agent has no chances")
    score: float | None = Field(description="of a weight vector: higher is better, no unit")
    loss: float | None = Field(
        description="chance to win given away against the best move; null without chances"
    )


class Ruled(Answer):
    """The rules that were applied."""

    rules: str = Field(description="the rules text of the position")
    rules_hash: str = Field(description="16 hex digits over all that changes what is legal")


class MoveAnswer(Ruled):
    """The move of an agent. Without a legal move ``move`` is null and ``ranked`` empty."""

    move: MoveText | None
    ranked: list[RankedMove] = Field(description="every legal move, best first")
    forced: bool = Field(description="there was no choice: one legal move, or none")
    seat: SeatLetter = Field(description="who decides")
    die: Face
    agent: str = Field(description="the agent that decided, its level included")
    seed: int


class MovesRequest(Request):
    """What is legal here?"""

    position: Position
    die: Die = None


class LegalMove(Answer):
    """A legal move."""

    move: MoveText
    action: int = Field(description="the action code of the environments")
    source: int | None = Field(description="progress of the unit; -1 home base, null for pass")
    target: int | None = Field(description="progress that it would reach; null for pass")
    battle: bool = Field(description="starts a battle, for which two dice are thrown")


class MovesAnswer(Ruled):
    """The legal moves; none if no die has been thrown, or it moves nothing."""

    position: str
    seat: SeatLetter
    die: Face | None
    legal: list[LegalMove]
    forced: bool
    over: bool


class PlayRequest(Request):
    """Throw, play, or both. Dice that are not given are drawn from the seed.

    Before a throw: throws, and plays ``move`` if it is given. After a throw: plays ``move``.
    """

    position: Position
    move: MoveText | None = None
    die: Die = None
    battle: Annotated[list[Face], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="the dice of a battle: attacker, defender"
    )
    seed: Seed = None


class PieceEvent(Answer):
    """Something that happened to pieces."""

    kind: Literal["loss", "arrival"]
    seat: SeatLetter
    count: int
    cause: Literal["captured", "protected", "own_collision", "battle"] | None
    by: SeatLetter | None


class GameResult(Answer):
    """How a game ended."""

    status: Literal["won", "truncated"]
    winner: SeatLetter | None
    places: list[SeatLetter]
    out: list[SeatLetter]


class PlayAnswer(Ruled):
    """The position afterwards. ``legal`` has the moves of a die that now waits to be played."""

    position: str
    thrown_by: SeatLetter = Field(description="who threw the die")
    die: Face
    move: MoveText | None = Field(description="the move played; null if none was")
    battle: list[Face] | None = Field(description="its dice: attacker, defender")
    events: list[PieceEvent]
    seat: SeatLetter = Field(description="who is to act now; the winner at the end")
    throws: int
    legal: list[MoveText]
    over: bool
    result: GameResult | None
    seed: int


class EvaluateRequest(Request):
    """What is this position worth to each seat?"""

    position: Position
    evaluator: Annotated[
        StrictStr | None,
        Field(
            min_length=1,
            max_length=200,
            description="linear, exact or net:NAME; the best that fits if left out",
            examples=["linear"],
        ),
    ] = None


class EvaluateAnswer(Ruled):
    """Chances to win; with a die thrown those after the best move for the seat to act."""

    win: Chances
    best: MoveText | None = Field(description="that move; null before a throw")
    evaluator: str
    evaluator_hash: str
    over: bool


# ---------------------------------------------------------------------------------- many positions

MAX_BATCH = 10_000
Positions = Annotated[
    list[StrictStr],
    Field(min_length=1, max_length=MAX_BATCH, description="position texts, rules may differ"),
]


class MoveBatchRequest(Request):
    """Many decisions of one agent. Position i is decided as game i of the seed."""

    positions: Positions
    agent: AgentSpec = None
    level: Level = None
    seed: Seed = None


class MoveBatchAnswer(Answer):
    """A move for each position."""

    moves: list[MoveText]
    agent: str | None = Field(description="the agent; null if it differs with the rules")
    seed: int


class MovesBatchRequest(Request):
    """The legal moves of many positions."""

    positions: Positions


class MovesBatchAnswer(Answer):
    """The legal moves of each position; none where no die has been thrown."""

    legal: list[list[MoveText]]


class PlayBatchRequest(Request):
    """Many plays, each on its own."""

    plays: Annotated[list[PlayRequest], Field(min_length=1, max_length=1000)]


class PlayBatchAnswer(Answer):
    """What became of each."""

    plays: list[PlayAnswer]


class EvaluateBatchRequest(Request):
    """Chances of many positions, in the eyes of one evaluator."""

    positions: Positions
    evaluator: Annotated[StrictStr | None, Field(min_length=1, max_length=200)] = None


class EvaluateBatchAnswer(Answer):
    """The chances of each position."""

    win: list[Chances]
    evaluator: str
    evaluator_hash: str


# --------------------------------------------------------------------------------- what there is


class AgentInfo(Answer):
    """An agent that may be asked."""

    agent: str = Field(description="its spec")
    kind: str
    text: str = Field(description="how it plays")
    win: bool = Field(description="has win chances, so /v1/move tells losses")


class AgentsAnswer(Answer):
    """The agents that fit the rules asked about."""

    rules: str
    default: str
    agents: list[AgentInfo]
    levels: bool = Field(description="every one may be followed by @level=1 to @level=10")


class ModelInfo(Answer):
    """A shipped network."""

    name: str
    agent: str = Field(description="its spec as an agent")
    rules: str | None
    rules_hash: str | None
    players: int | None
    card: dict[str, Any] = Field(description="how it was made and what it is worth")


class ModelsAnswer(Answer):
    """The shipped networks."""

    models: list[ModelInfo]


class OptionInfo(Answer):
    """An option of a rule set."""

    option: str
    value: str
    text: str
    rule: str
    kind: str
    choices: list[str]
    differs: bool = Field(description="from the preset")


class RulesAnswer(Ruled):
    """A rule set in words."""

    name: str
    presets: list[str]
    seats: list[SeatLetter]
    players: int
    start: str = Field(description="a position text: nobody in play, the first seat to throw")
    actions: int
    options: list[OptionInfo]


class LayoutAnswer(Answer):
    """Where everything is on the board, in units of a frame ``width`` x ``height``."""

    model_config = ConfigDict(extra="allow")
    version: int
    width: float
    height: float
    viewer: int
    ring: list[dict[str, float]]
    seats: list[dict[str, Any]]
    dome: dict[str, float]


class HealthAnswer(Answer):
    """Here, and ready."""

    status: Literal["ok"]
    version: str


# ------------------------------------------------------------------------------------- games

RequestId = Annotated[
    StrictStr | None,
    Field(
        min_length=16,
        max_length=100,
        pattern=r"^[\x21-\x7e]+$",
        description="a random text of your own that nobody can guess: a request repeated with it "
        "is answered again and done once",
    ),
]
_PLAIN = r"^[^\x00-\x1f\x7f]*$"
Name = Annotated[StrictStr, Field(max_length=40, pattern=_PLAIN)]


class BotRequest(Request):
    """A bot on a chair."""

    agent: Annotated[StrictStr, Field(min_length=1, max_length=MAX_SPEC, examples=["cautious"])]
    level: Level = None
    name: Name = ""


class CreateRequest(Request):
    """A new game."""

    rules: Annotated[StrictStr, Field(max_length=600, examples=["norske"])] = "kimble"
    players: Annotated[StrictInt | None, Field(ge=2, le=4)] = None
    seats: Annotated[
        StrictStr | None, Field(pattern=r"^[RBYG]{2,4}$", description="who plays, such as RBG")
    ] = None
    bots: Annotated[
        dict[SeatLetter, BotRequest] | None, Field(description="chairs that bots take")
    ] = None
    request_id: RequestId = None


class ChairInfo(Answer):
    """Who sits on a chair."""

    kind: Literal["open", "human", "bot"]
    name: str
    agent: str | None
    level: int | None


class GameView(Ruled):
    """All that may be known of a game now. ``legal`` has the moves of a die that waits."""

    game: str
    status: Literal["open", "running", "over"]
    last: int = Field(description="the number of the last event")
    chairs: dict[SeatLetter, ChairInfo] = Field(
        description="a chair for each player; with two_colours R plays R and Y, B plays B and G"
    )
    commitment: str = Field(description="SHA-256 of the secret of the dice")
    secret: str | None = Field(description="that secret, once the game is over")
    undo: list[SeatLetter] | None = Field(description="who agrees to the undo asked for; or null")
    position: str | None
    seat: SeatLetter | None
    chair: SeatLetter | None = Field(description="whose turn it is")
    die: Face | None
    throws: int | None
    legal: list[MoveText]
    over: bool
    result: GameResult | None


class CreateAnswer(Answer):
    """The game and its two secrets: one lets people in, the other only lets them watch."""

    invite: str
    watch: str
    state: GameView


class JoinRequest(Request):
    """Take a chair, any that is free if ``seat`` is left out."""

    seat: SeatLetter | None = None
    name: Name = ""
    nonce: Annotated[
        StrictStr,
        Field(max_length=100, pattern=_PLAIN, description="anything: it is mixed into the dice"),
    ] = ""
    request_id: RequestId = None


class JoinAnswer(Answer):
    """The chair and its secret."""

    seat: SeatLetter
    token: str
    state: GameView


class ActRequest(Request):
    """What every action may say."""

    request_id: RequestId = None
    after: Annotated[
        StrictInt | None,
        Field(ge=0, description="refuse unless this is the last event: nothing is done twice"),
    ] = None


class ThrowRequest(ActRequest):
    """Throw the die."""


class GameMoveRequest(ActRequest):
    """Play a move."""

    move: MoveText


class UndoRequest(ActRequest):
    """Ask for undo or agree to it (true), or refuse it (false)."""

    agree: StrictBool = True


class GameEvent(BaseModel):
    """Something that happened; more fields by kind, see docs/service.md."""

    model_config = ConfigDict(extra="allow")
    n: int
    kind: Literal[
        "created", "joined", "started", "throw", "move", "undo_asked", "undo_agreed",
        "undo_refused", "undone", "over",
    ]  # fmt: skip


class ActAnswer(Answer):
    """What it led to, moves of bots included, and how the game stands."""

    events: list[GameEvent]
    state: GameView


class EventsAnswer(Answer):
    """Events in order; ask again if ``last`` is beyond them."""

    events: list[GameEvent]
    last: int


class DiceProof(Answer):
    """What checks the dice."""

    commitment: str
    secret: str | None
    nonces: dict[SeatLetter, str]


class FairRecord(Answer):
    """The record of a game, line by line, with what checks its dice."""

    format: Literal["kimble-fair-game/1"]
    game: str
    record: list[str]
    dice: DiceProof
