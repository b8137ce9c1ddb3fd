// What the types forbid: tsc fails where an expected error does not come.
import { Kimble, type MoveRequest } from "./kimble.js";

export async function forbidden(kimble: Kimble): Promise<void> {
  // @ts-expect-error a slip of the pen
  const slip: MoveRequest = { positon: "kimble R3/Y- R 4 1" };
  await kimble.move(slip);
  const answer = await kimble.play({ position: "kimble R3/Y- R 4 1", move: "3-7" });
  // @ts-expect-error a text is no number
  const wrong: number = answer.position;
  // @ts-expect-error a result may be missing while the game goes on
  const winner = answer.result.winner;
  // @ts-expect-error no such seat
  if (answer.seat === "P") console.log(wrong, winner);
}
