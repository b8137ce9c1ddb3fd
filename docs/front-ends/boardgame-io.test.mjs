// Plays a whole game with the real boardgame.io: node boardgame-io.test.mjs ADDRESS
import { createRequire } from "node:module";
import { kimbleBot, kimbleGame } from "./boardgame-io.mjs";
import { Kimble } from "./client.mjs";

const require = createRequire(import.meta.url);
const { Client } = require("boardgame.io/dist/cjs/client.js");
const { Bot, Step } = require("boardgame.io/dist/cjs/ai.js");

const game = kimbleGame("kimble[pieces=1] R-/B-/Y- B - 1");
const client = Client({ game, numPlayers: 3, debug: false });
client.start();
const bot = new (kimbleBot(Bot, new Kimble(process.argv[2]), { agent: "random" }))({ game });
let steps = 0;
const turns = new Set();
while (!client.getState().ctx.gameover) {
  const { G, ctx } = client.getState();
  if (G.seats[Number(ctx.currentPlayer)] !== G.seat) throw new Error("the wrong player's turn");
  turns.add(ctx.currentPlayer);
  await Step(client, bot);
  if (++steps > 2000) throw new Error("the game does not end");
}
const { G, ctx } = client.getState();
if (G.seats[Number(ctx.gameover.winner)] !== G.seat) throw new Error("the wrong winner");
console.log(JSON.stringify({ steps, turns: turns.size, winner: ctx.gameover.winner, seat: G.seat }));
