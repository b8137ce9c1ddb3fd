// A move, and a game with seats, dice of the service and a bot, in TypeScript.
import { Kimble, KimbleError, type MoveAnswer } from "./kimble.js";

declare const process: { argv: string[] };
const kimble = new Kimble(process.argv[2]);

const answer: MoveAnswer = await kimble.move({
  position: "norske R3,20/B0/Y-/G- R 4 1",
  agent: "cautious",
});
console.log(`${answer.agent} plays ${answer.move}`);

try {
  await kimble.move({ position: "chess" });
} catch (error) {
  if (!(error instanceof KimbleError)) throw error;
  console.log(`${error.status} ${error.code} in ${error.field}`);
}

const made = await kimble.createGame({
  rules: "norske[pieces=1]",
  players: 2,
  bots: { Y: { agent: "random" } },
});
const game = made.state.game;
const joined = await kimble.joinGame(game, { name: "Aino" }, made.invite);
let state = joined.state;
while (state.status !== "over") {
  if (state.chair !== joined.seat) state = await kimble.lookGame(game, joined.token);
  else if (state.die === null) state = (await kimble.throwGame(game, {}, joined.token)).state;
  else state = (await kimble.moveGame(game, { move: state.legal[0]! }, joined.token)).state;
}
console.log(`over after ${state.last} events: ${state.seat} wins`);
