// More random lives of rollouts than test/features/rollouts/model.test.ts has the time for, from another seed.
import { afterAll, beforeAll, expect, test } from "vitest";
import { startRolloutWorld } from "../../features/rollouts/kit.ts";
import { expectSoundLives } from "../../features/rollouts/lives.ts";
import { SEED } from "../../kit/gateway/seed.ts";
import type { World } from "../../kit/gateway/world.ts";

const LIVES = 150;
const LONGEST_MS = 600_000;

let world: World;
beforeAll(async () => {
  world = await startRolloutWorld();
});
afterAll(() => world.close());

test(`${LIVES} more random lives of rollouts keep every invariant (seed ${SEED})`, { timeout: LONGEST_MS }, async () => {
  await expect(expectSoundLives(world, LIVES, SEED + 1)).resolves.toBeUndefined();
});
