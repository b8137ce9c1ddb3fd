// Made from docs/openapi.json by docs/typescript.py: change those, not this.
// A typed client of `kimble serve` for browsers, Node 18 or newer, Deno and Bun; no dependencies.

/** What the service says when something is wrong. */
export class KimbleError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly field: string | null,
  ) {
    super(message);
  }
}

/** What it led to, moves of bots included, and how the game stands. */
export interface ActAnswer {
  events: GameEvent[];
  state: GameView;
}

/** An agent that may be asked. */
export interface AgentInfo {
  /** its spec */
  agent: string;
  kind: string;
  /** how it plays */
  text: string;
  /** has win chances, so /v1/move tells losses */
  win: boolean;
}

/** The agents that fit the rules asked about. */
export interface AgentsAnswer {
  rules: string;
  default: string;
  agents: AgentInfo[];
  /** every one may be followed by @level=1 to @level=10 */
  levels: boolean;
}

/** A bot on a chair. */
export interface BotRequest {
  agent: string;
  /** 1 to 10: makes the agent weaker; at full strength if left out */
  level?: number | null;
  name?: string;
}

/** Who sits on a chair. */
export interface ChairInfo {
  kind: "open" | "human" | "bot";
  name: string;
  agent: string | null;
  level: number | null;
}

/** The game and its two secrets: one lets people in, the other only lets them watch. */
export interface CreateAnswer {
  invite: string;
  watch: string;
  state: GameView;
}

/** A new game. */
export interface CreateRequest {
  rules?: string;
  players?: number | null;
  /** who plays, such as RBG */
  seats?: string | null;
  /** chairs that bots take */
  bots?: Partial<Record<"R" | "B" | "Y" | "G", BotRequest>> | null;
  /**
   * a random text of your own that nobody can guess: a request repeated with it is answered
   * again and done once
   */
  request_id?: string | null;
}

/** What checks the dice. */
export interface DiceProof {
  commitment: string;
  secret: string | null;
  nonces: Partial<Record<"R" | "B" | "Y" | "G", string>>;
}

/** What went wrong. */
export interface ErrorBody {
  /** a word that does not change, such as illegal_move */
  code: string;
  /** a sentence for people */
  message: string;
  /** the field of the request that it is about */
  field: string | null;
}

/** Chances to win; with a die thrown those after the best move for the seat to act. */
export interface EvaluateAnswer {
  /** the rules text of the position */
  rules: string;
  /** 16 hex digits over all that changes what is legal */
  rules_hash: string;
  /** the chance of each seat (red, blue, yellow, green) to win; 0 if absent */
  win: number[];
  /** that move; null before a throw */
  best: string | null;
  evaluator: string;
  evaluator_hash: string;
  over: boolean;
}

/** The chances of each position. */
export interface EvaluateBatchAnswer {
  win: number[][];
  evaluator: string;
  evaluator_hash: string;
}

/** Chances of many positions, in the eyes of one evaluator. */
export interface EvaluateBatchRequest {
  /** position texts, rules may differ */
  positions: string[];
  evaluator?: string | null;
}

/** What is this position worth to each seat? */
export interface EvaluateRequest {
  /** a position text: rules, pieces of each seat, seat to act, die or -, throws */
  position: string;
  /** linear, exact or net:NAME; the best that fits if left out */
  evaluator?: string | null;
}

/** Events in order; ask again if ``last`` is beyond them. */
export interface EventsAnswer {
  events: GameEvent[];
  last: number;
}

/** The record of a game, line by line, with what checks its dice. */
export interface FairRecord {
  format: "kimble-fair-game/1";
  game: string;
  record: string[];
  dice: DiceProof;
}

/** Something that happened; more fields by kind, see docs/service.md. */
export interface GameEvent {
  n: number;
  kind: "created" | "joined" | "started" | "throw" | "move" | "undo_asked" | "undo_agreed" | "undo_refused" | "undone" | "over";
  [more: string]: unknown;
}

/** Play a move. */
export interface GameMoveRequest {
  /**
   * a random text of your own that nobody can guess: a request repeated with it is answered
   * again and done once
   */
  request_id?: string | null;
  /** refuse unless this is the last event: nothing is done twice */
  after?: number | null;
  /** enter, 3-8, 30-H or pass */
  move: string;
}

/** How a game ended. */
export interface GameResult {
  status: "won" | "truncated";
  winner: "R" | "B" | "Y" | "G" | null;
  places: ("R" | "B" | "Y" | "G")[];
  out: ("R" | "B" | "Y" | "G")[];
}

/** All that may be known of a game now. ``legal`` has the moves of a die that waits. */
export interface GameView {
  /** the rules text of the position */
  rules: string;
  /** 16 hex digits over all that changes what is legal */
  rules_hash: string;
  game: string;
  status: "open" | "running" | "over";
  /** the number of the last event */
  last: number;
  /** a chair for each player; with two_colours R plays R and Y, B plays B and G */
  chairs: Partial<Record<"R" | "B" | "Y" | "G", ChairInfo>>;
  /** SHA-256 of the secret of the dice */
  commitment: string;
  /** that secret, once the game is over */
  secret: string | null;
  /** who agrees to the undo asked for; or null */
  undo: ("R" | "B" | "Y" | "G")[] | null;
  position: string | null;
  seat: "R" | "B" | "Y" | "G" | null;
  /** whose turn it is */
  chair: "R" | "B" | "Y" | "G" | null;
  die: number | null;
  throws: number | null;
  legal: string[];
  over: boolean;
  result: GameResult | null;
}

/** Here, and ready. */
export interface HealthAnswer {
  status: "ok";
  version: string;
}

/** The chair and its secret. */
export interface JoinAnswer {
  seat: "R" | "B" | "Y" | "G";
  token: string;
  state: GameView;
}

/** Take a chair, any that is free if ``seat`` is left out. */
export interface JoinRequest {
  seat?: "R" | "B" | "Y" | "G" | null;
  name?: string;
  /** anything: it is mixed into the dice */
  nonce?: string;
  /**
   * a random text of your own that nobody can guess: a request repeated with it is answered
   * again and done once
   */
  request_id?: string | null;
}

/** Where everything is on the board, in units of a frame ``width`` x ``height``. */
export interface LayoutAnswer {
  version: number;
  width: number;
  height: number;
  viewer: number;
  ring: Record<string, number>[];
  seats: Record<string, unknown>[];
  dome: Record<string, number>;
  [more: string]: unknown;
}

/** A legal move. */
export interface LegalMove {
  /** enter, 3-8, 30-H or pass */
  move: string;
  /** the action code of the environments */
  action: number;
  /** progress of the unit; -1 home base, null for pass */
  source: number | null;
  /** progress that it would reach; null for pass */
  target: number | null;
  /** starts a battle, for which two dice are thrown */
  battle: boolean;
}

/** A shipped network. */
export interface ModelInfo {
  name: string;
  /** its spec as an agent */
  agent: string;
  rules: string | null;
  rules_hash: string | null;
  players: number | null;
  /** how it was made and what it is worth */
  card: Record<string, unknown>;
}

/** The shipped networks. */
export interface ModelsAnswer {
  models: ModelInfo[];
}

/** The move of an agent. Without a legal move ``move`` is null and ``ranked`` empty. */
export interface MoveAnswer {
  /** the rules text of the position */
  rules: string;
  /** 16 hex digits over all that changes what is legal */
  rules_hash: string;
  move: string | null;
  /** every legal move, best first */
  ranked: RankedMove[];
  /** there was no choice: one legal move, or none */
  forced: boolean;
  /** who decides */
  seat: "R" | "B" | "Y" | "G";
  die: number;
  /** the agent that decided, its level included */
  agent: string;
  seed: number;
}

/** A move for each position. */
export interface MoveBatchAnswer {
  moves: string[];
  /** the agent; null if it differs with the rules */
  agent: string | null;
  seed: number;
}

/** Many decisions of one agent. Position i is decided as game i of the seed. */
export interface MoveBatchRequest {
  /** position texts, rules may differ */
  positions: string[];
  /**
   * an agent: one of /v1/agents, or weights:{"capture": 5}; the best that is quick under the
   * rules if left out
   */
  agent?: string | null;
  /** 1 to 10: makes the agent weaker; at full strength if left out */
  level?: number | null;
  /**
   * of dice and of an agent's own choices; drawn, and told, if left out. JSON readers of
   * JavaScript keep whole numbers exact up to 2**53
   */
  seed?: number | null;
}

/** Which move would an agent play here? */
export interface MoveRequest {
  /** a position text: rules, pieces of each seat, seat to act, die or -, throws */
  position: string;
  /** the die thrown, for a position before the throw */
  die?: number | null;
  /**
   * an agent: one of /v1/agents, or weights:{"capture": 5}; the best that is quick under the
   * rules if left out
   */
  agent?: string | null;
  /** 1 to 10: makes the agent weaker; at full strength if left out */
  level?: number | null;
  /**
   * of dice and of an agent's own choices; drawn, and told, if left out. JSON readers of
   * JavaScript keep whole numbers exact up to 2**53
   */
  seed?: number | null;
}

/** The legal moves; none if no die has been thrown, or it moves nothing. */
export interface MovesAnswer {
  /** the rules text of the position */
  rules: string;
  /** 16 hex digits over all that changes what is legal */
  rules_hash: string;
  position: string;
  seat: "R" | "B" | "Y" | "G";
  die: number | null;
  legal: LegalMove[];
  forced: boolean;
  over: boolean;
}

/** The legal moves of each position; none where no die has been thrown. */
export interface MovesBatchAnswer {
  legal: string[][];
}

/** The legal moves of many positions. */
export interface MovesBatchRequest {
  /** position texts, rules may differ */
  positions: string[];
}

/** What is legal here? */
export interface MovesRequest {
  /** a position text: rules, pieces of each seat, seat to act, die or -, throws */
  position: string;
  /** the die thrown, for a position before the throw */
  die?: number | null;
}

/** An option of a rule set. */
export interface OptionInfo {
  option: string;
  value: string;
  text: string;
  rule: string;
  kind: string;
  choices: string[];
  /** from the preset */
  differs: boolean;
}

/** Something that happened to pieces. */
export interface PieceEvent {
  kind: "loss" | "arrival";
  seat: "R" | "B" | "Y" | "G";
  count: number;
  cause: "captured" | "protected" | "own_collision" | "battle" | null;
  by: "R" | "B" | "Y" | "G" | null;
}

/** The position afterwards. ``legal`` has the moves of a die that now waits to be played. */
export interface PlayAnswer {
  /** the rules text of the position */
  rules: string;
  /** 16 hex digits over all that changes what is legal */
  rules_hash: string;
  position: string;
  /** who threw the die */
  thrown_by: "R" | "B" | "Y" | "G";
  die: number;
  /** the move played; null if none was */
  move: string | null;
  /** its dice: attacker, defender */
  battle: number[] | null;
  events: PieceEvent[];
  /** who is to act now; the winner at the end */
  seat: "R" | "B" | "Y" | "G";
  throws: number;
  legal: string[];
  over: boolean;
  result: GameResult | null;
  seed: number;
}

/** What became of each. */
export interface PlayBatchAnswer {
  plays: PlayAnswer[];
}

/** Many plays, each on its own. */
export interface PlayBatchRequest {
  plays: PlayRequest[];
}

/**
 * Throw, play, or both. Dice that are not given are drawn from the seed. Before a throw:
 * throws, and plays ``move`` if it is given. After a throw: plays ``move``.
 */
export interface PlayRequest {
  /** a position text: rules, pieces of each seat, seat to act, die or -, throws */
  position: string;
  move?: string | null;
  /** the die thrown, for a position before the throw */
  die?: number | null;
  /** the dice of a battle: attacker, defender */
  battle?: number[] | null;
  /**
   * of dice and of an agent's own choices; drawn, and told, if left out. JSON readers of
   * JavaScript keep whole numbers exact up to 2**53
   */
  seed?: number | null;
}

/** A legal move and what it is worth. */
export interface RankedMove {
  /** enter, 3-8, 30-H or pass */
  move: string;
  /** after the move; null if the agent has no chances */
  win: number[] | null;
  /** of a weight vector: higher is better, no unit */
  score: number | null;
  /** chance to win given away against the best move; null without chances */
  loss: number | null;
}

/** A rule set in words. */
export interface RulesAnswer {
  /** the rules text of the position */
  rules: string;
  /** 16 hex digits over all that changes what is legal */
  rules_hash: string;
  name: string;
  presets: string[];
  seats: ("R" | "B" | "Y" | "G")[];
  players: number;
  /** a position text: nobody in play, the first seat to throw */
  start: string;
  actions: number;
  options: OptionInfo[];
}

/** Throw the die. */
export interface ThrowRequest {
  /**
   * a random text of your own that nobody can guess: a request repeated with it is answered
   * again and done once
   */
  request_id?: string | null;
  /** refuse unless this is the last event: nothing is done twice */
  after?: number | null;
}

/** Ask for undo or agree to it (true), or refuse it (false). */
export interface UndoRequest {
  /**
   * a random text of your own that nobody can guess: a request repeated with it is answered
   * again and done once
   */
  request_id?: string | null;
  /** refuse unless this is the last event: nothing is done twice */
  after?: number | null;
  agree?: boolean;
}

export class Kimble {
  /** @param base address of the service  @param key access key, where the operator asks for one */
  constructor(
    readonly base: string = "http://127.0.0.1:8000",
    readonly key?: string,
  ) {}

  private async ask(
    method: string, path: string, query: object | undefined, body: object | undefined,
    secret?: string,
  ): Promise<Response> {
    const url = new URL(path, this.base);
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    }
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["content-type"] = "application/json";
    if (this.key !== undefined) headers["x-kimble-key"] = this.key;
    if (secret !== undefined) headers["authorization"] = `Bearer ${secret}`;
    const init: RequestInit = { method, headers };
    if (body !== undefined) init.body = JSON.stringify(body);
    const answer = await fetch(url, init);
    if (answer.ok) return answer;
    const text = await answer.text();
    let told: Partial<ErrorBody> = {};
    try {
      told = JSON.parse(text) as ErrorBody;
    } catch {
      told = { message: text };
    }
    throw new KimbleError(
      answer.status, told.code ?? "unknown", told.message ?? "no message", told.field ?? null,
    );
  }

  /** The move of an agent, and what every legal move is worth. */
  async move(body: MoveRequest): Promise<MoveAnswer> {
    const answer = await this.ask("POST", `/v1/move`, undefined, body);
    return (await answer.json()) as MoveAnswer;
  }

  /** The legal moves. */
  async moves(body: MovesRequest): Promise<MovesAnswer> {
    const answer = await this.ask("POST", `/v1/moves`, undefined, body);
    return (await answer.json()) as MovesAnswer;
  }

  /** The position after a throw, a move, or both. */
  async play(body: PlayRequest): Promise<PlayAnswer> {
    const answer = await this.ask("POST", `/v1/play`, undefined, body);
    return (await answer.json()) as PlayAnswer;
  }

  /** The chance of every seat to win. */
  async evaluate(body: EvaluateRequest): Promise<EvaluateAnswer> {
    const answer = await this.ask("POST", `/v1/evaluate`, undefined, body);
    return (await answer.json()) as EvaluateAnswer;
  }

  /** A move for each of many positions. */
  async moveBatch(body: MoveBatchRequest): Promise<MoveBatchAnswer> {
    const answer = await this.ask("POST", `/v1/move/batch`, undefined, body);
    return (await answer.json()) as MoveBatchAnswer;
  }

  /** The legal moves of each of many positions. */
  async movesBatch(body: MovesBatchRequest): Promise<MovesBatchAnswer> {
    const answer = await this.ask("POST", `/v1/moves/batch`, undefined, body);
    return (await answer.json()) as MovesBatchAnswer;
  }

  /** Many plays, each on its own. */
  async playBatch(body: PlayBatchRequest): Promise<PlayBatchAnswer> {
    const answer = await this.ask("POST", `/v1/play/batch`, undefined, body);
    return (await answer.json()) as PlayBatchAnswer;
  }

  /** The chances of each of many positions of the same rules. */
  async evaluateBatch(body: EvaluateBatchRequest): Promise<EvaluateBatchAnswer> {
    const answer = await this.ask("POST", `/v1/evaluate/batch`, undefined, body);
    return (await answer.json()) as EvaluateBatchAnswer;
  }

  /** The agents that can be asked under these rules. */
  async agents(query: { rules?: string; players?: number | null } = {}): Promise<AgentsAnswer> {
    const answer = await this.ask("GET", `/v1/agents`, query, undefined);
    return (await answer.json()) as AgentsAnswer;
  }

  /** The shipped networks, how they were made and what they are worth. */
  async models(): Promise<ModelsAnswer> {
    const answer = await this.ask("GET", `/v1/models`, undefined, undefined);
    return (await answer.json()) as ModelsAnswer;
  }

  /** Every option of a rule set in words. */
  async rules(query: { rules?: string; players?: number | null } = {}): Promise<RulesAnswer> {
    const answer = await this.ask("GET", `/v1/rules`, query, undefined);
    return (await answer.json()) as RulesAnswer;
  }

  /** Where everything is on the board, for drawing it. */
  async layout(query: { rules?: string; players?: number | null; viewer?: number } = {}): Promise<LayoutAnswer> {
    const answer = await this.ask("GET", `/v1/layout`, query, undefined);
    return (await answer.json()) as LayoutAnswer;
  }

  /** Here, and ready. */
  async health(): Promise<HealthAnswer> {
    const answer = await this.ask("GET", `/v1/health`, undefined, undefined);
    return (await answer.json()) as HealthAnswer;
  }

  /** Figures in the text format of Prometheus. */
  async metrics(): Promise<string> {
    const answer = await this.ask("GET", `/v1/metrics`, undefined, undefined);
    return await answer.text();
  }

  /** A new game. Its dice are fixed by a secret whose hash is told now. */
  async createGame(body: CreateRequest, secret?: string): Promise<CreateAnswer> {
    const answer = await this.ask("POST", `/v1/games`, undefined, body, secret);
    return (await answer.json()) as CreateAnswer;
  }

  /** Take a chair, with the secret of the invitation. */
  async joinGame(game: string, body: JoinRequest, secret?: string): Promise<JoinAnswer> {
    const answer = await this.ask("POST", `/v1/games/${game}/join`, undefined, body, secret);
    return (await answer.json()) as JoinAnswer;
  }

  /** Throw the die. */
  async throwGame(game: string, body: ThrowRequest, secret?: string): Promise<ActAnswer> {
    const answer = await this.ask("POST", `/v1/games/${game}/throw`, undefined, body, secret);
    return (await answer.json()) as ActAnswer;
  }

  /** Play a move. */
  async moveGame(game: string, body: GameMoveRequest, secret?: string): Promise<ActAnswer> {
    const answer = await this.ask("POST", `/v1/games/${game}/move`, undefined, body, secret);
    return (await answer.json()) as ActAnswer;
  }

  /** Ask for undo, agree or refuse; the last move of a person is taken back when all agree. */
  async undoGame(game: string, body: UndoRequest, secret?: string): Promise<ActAnswer> {
    const answer = await this.ask("POST", `/v1/games/${game}/undo`, undefined, body, secret);
    return (await answer.json()) as ActAnswer;
  }

  /** How the game stands. */
  async lookGame(game: string, secret?: string): Promise<GameView> {
    const answer = await this.ask("GET", `/v1/games/${game}`, undefined, undefined, secret);
    return (await answer.json()) as GameView;
  }

  /**
   * The events after one that was seen. (A WebSocket at the same address sends them as they
   * happen.)
   */
  async eventsGame(game: string, query: { after?: number; most?: number } = {}, secret?: string): Promise<EventsAnswer> {
    const answer = await this.ask("GET", `/v1/games/${game}/events`, query, undefined, secret);
    return (await answer.json()) as EventsAnswer;
  }

  /** The record with what checks its dice: for `kimble check-dice`. */
  async recordGame(game: string, secret?: string): Promise<FairRecord> {
    const answer = await this.ask("GET", `/v1/games/${game}/record`, undefined, undefined, secret);
    return (await answer.json()) as FairRecord;
  }

  /** The bare record, lines of JSON: for `kimble watch` and `kimble analyze`. */
  async recordLinesGame(game: string, secret?: string): Promise<string> {
    const answer = await this.ask("GET", `/v1/games/${game}/record.jsonl`, undefined, undefined, secret);
    return await answer.text();
  }
}
