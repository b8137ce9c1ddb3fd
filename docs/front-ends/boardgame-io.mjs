// Kimble for boardgame.io: a game that follows the service, and a bot that asks it.
//
// The rules are not written again here. A move of this game is an answer of the service: what
// /v1/play said of a throw, or of a throw and its move. A board for people does what the bot does:
//
//   const answer = await service.ask("/v1/play", { position: G.position });   // throws
//   moves.follow(answer);                                 // a choice waits if answer.legal has moves
//
// boardgame.io's class Bot is handed in, since bundlers and Node find it under different names:
//   import { Bot } from "boardgame.io/ai";
//   const RandomBot = kimbleBot(Bot, service, { agent: "random" });

/** A game that begins at a position text such as "kimble R-/Y- R - 1". */
export function kimbleGame(position) {
  const seats = position.split(" ")[1].split("/").map((text) => text[0]);
  const first = position.split(" ")[2];
  const player = (seat) => seats.indexOf(seat);
  return {
    name: "kimble",
    setup: () => ({ position, seats, seat: first, legal: [], over: false, result: null }),
    turn: {
      order: {
        first: () => player(first),
        next: ({ G }) => player(G.seat),
      },
    },
    moves: {
      follow: ({ G, events }, answer) => {
        const { position, seat, legal, over, result, die, move } = answer;
        if (seat !== G.seat && !over) events.endTurn();
        return { ...G, position, seat, legal, over, result, last: { die, move } };
      },
    },
    endIf: ({ G }) => (G.over ? { winner: String(player(G.result?.winner)) } : undefined),
  };
}

/** A class of bots for boardgame.io that plays as an agent of the service. */
export function kimbleBot(Bot, service, { agent = null, level = null } = {}) {
  return class KimbleBot extends Bot {
    async play({ G }, playerID) {
      let answer = G;
      if (!G.legal.length) answer = await service.ask("/v1/play", { position: G.position });
      if (answer.legal.length) {
        const { position } = answer;
        const { move } = await service.ask("/v1/move", { position, agent, level });
        answer = await service.ask("/v1/play", { position, move });
      }
      const payload = { type: "follow", args: [answer], playerID };
      return { action: { type: "MAKE_MOVE", payload } };
    }
  };
}
