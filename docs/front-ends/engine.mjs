// `kimble engine` inside a Node program, without a service: node engine.mjs
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const engine = spawn("kimble", ["engine"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();
createInterface({ input: engine.stdout }).on("line", (line) => {
  const { id, answer, error } = JSON.parse(line);
  const { resolve, reject } = waiting.get(id);
  waiting.delete(id);
  if (error) reject(new Error(error.message));
  else resolve(answer);
});

let last = 0;
function ask(question, fields) {
  engine.stdin.write(JSON.stringify({ id: ++last, ask: question, ...fields }) + "\n");
  return new Promise((resolve, reject) => waiting.set(last, { resolve, reject }));
}

const position = "norske R3,20/B0/Y-/G- R 4 1";
const [legal, best] = await Promise.all([
  ask("moves", { position }),
  ask("move", { position, agent: "cautious" }),
]);
console.log(legal.legal.length, "legal,", best.move, "played");
await ask("move", { position: "chess" }).catch((error) => console.log("refused:", error.message));
engine.stdin.end();
