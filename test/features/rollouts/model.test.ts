// A few random lives of rollouts, see lives.ts. `npm run fuzz` takes more of them, with another seed each time, and so does test/release.
import { afterAll, beforeAll, expect, test } from "vitest";
import { EFFORT, SEED } from "../../kit/gateway/seed.ts";
import type { World } from "../../kit/gateway/world.ts";
import { startRolloutWorld } from "./kit.ts";
import { expectSoundLives } from "./lives.ts";

const LIVES = 5 * EFFORT;

let world: World;
beforeAll(async () => {
  world = await startRolloutWorld();
});
afterAll(() => world.close());

test(`${LIVES} random lives of rollouts keep every invariant, and what a rollout lists is what is not refused (seed ${SEED})`, async () => {
  await expect(expectSoundLives(world, LIVES, SEED)).resolves.toBeUndefined();
}, 600_000);
