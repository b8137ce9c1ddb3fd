// A client of `kimble serve` for Node 18 or newer and browsers: node client.mjs [address]

export class Kimble {
  constructor(address = "http://127.0.0.1:8000", key = undefined) {
    this.address = address;
    this.headers = { "content-type": "application/json" };
    if (key !== undefined) this.headers["x-kimble-key"] = key;
  }

  async ask(path, fields) {
    const init = { method: "POST", headers: this.headers, body: JSON.stringify(fields) };
    const answer = await fetch(this.address + path, init);
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.message);
    return told;
  }
}

if (globalThis.process?.argv[1]?.endsWith("client.mjs")) {
  // a whole game, every move asked for
  const kimble = new Kimble(process.argv[2]);
  let game = { position: "kimble[pieces=1] R-/Y- R - 1", over: false, legal: [] };
  while (!game.over) {
    const { position, legal } = game;
    const move = legal.length ? (await kimble.ask("/v1/move", { position })).move : null;
    game = await kimble.ask("/v1/play", { position, move });
  }
  console.log("the winner is", game.result.winner);
}
