// Random lives of rollouts: people, devices and the clock do what they like between the steps, and after each of these things the invariants hold.
import fc from "fast-check";
import { expect } from "vitest";
import { ROLLOUT_ACTIONS, type RolloutAction } from "../../../protocol/index.ts";
import { FINAL } from "../../../server/features/rollouts/rules/states.ts";
import type { World } from "../../kit/gateway/world.ts";
import { advance, create, endCommands, type Fleet, membersOf, openFleet, orderedEver, read, step, TARGET } from "./kit.ts";

const HAPPENINGS = 18;
const SIZE = 9;
const MINUTE_MS = 60_000;

type Life = Fleet & { readonly rolloutId: string };
interface Happening {
  readonly name: string;
  run(life: Life): Promise<void>;
}

const INPUT: Readonly<Partial<Record<RolloutAction, object>>> = {
  resume: { acceptFailures: true },
  reject: { reason: "no" },
  promote: { reason: "go on" },
  abort: { reason: "enough" },
};
const pathOf = (action: RolloutAction): string => action.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** A call is refused for its state exactly if the rollout does not list it. */
const person = (action: RolloutAction): Happening => ({
  name: action,
  run: async (life) => {
    const { actions } = await read(life, life.rolloutId);
    const answer = await life.world.call(life.owner, "POST", `/v1/rollouts/${life.rolloutId}/${pathOf(action)}`, { body: INPUT[action] ?? {} });
    expect([action, answer.body.code]).toEqual([action, actions.includes(action) ? undefined : "INVALID_STATE_TRANSITION"]);
  },
});

type End = "works" | "fails" | "expires" | "says" | "other";
const device = (place: number, end: End): Happening => ({
  name: `device ${place} ${end}`,
  run: async (life) => {
    const members = await membersOf(life, life.rolloutId);
    const one = members.filter(({ status }) => status === "ordered" || status === "verifying")[place];
    if (one === undefined) return;
    const command = [one.command_id ?? ""];
    if (end === "works") await life.world.sql.query("update devices set agent_version = $2 where device_id = $1", [one.device_id, TARGET]);
    if (end === "other") await life.world.sql.query("update devices set agent_version = '3.0.0' where device_id = $1", [one.device_id]);
    if (end === "fails") await endCommands(life, command);
    if (end === "expires") await endCommands(life, command, { status: "expired", code: null, sent: false });
    if (end === "says" || end === "other") await endCommands(life, command, { status: "succeeded", code: null });
  },
});
const fate = (place: number, change: string): Happening => ({
  name: `${change} of ${place}`,
  run: async (life) => {
    const id = life.deviceIds[place];
    if (change === "leaves") await life.world.sql.query("update devices set fleet_ids = '{}' where device_id = $1", [id]);
    if (change === "deleted") await life.world.sql.query("update devices set deleted_at = now() where device_id = $1", [id]);
    if (change === "away") await life.world.sql.query("update devices set status = 'offline' where device_id = $1", [id]);
    if (change !== "back") return;
    await life.world.sql.query("update devices set status = 'online' where device_id = $1", [id]);
    await life.world.sql.query("update rollout_devices set due = true where device_id = $1 and status = 'pending' and late", [id]);
  },
});
let aheadMs = 0;
const time = (minutes: number): Happening => ({
  name: `${minutes} minutes`,
  run: async () => {
    aheadMs += minutes * MINUTE_MS;
    advance(minutes * MINUTE_MS);
  },
});
const steps: Happening = { name: "step", run: (life) => step(life) };

const place = fc.nat({ max: SIZE - 1 });
const HAPPENING = fc.oneof(
  { weight: 6, arbitrary: fc.constant(steps) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.nat({ max: 4 }), fc.constantFrom<End>("works", "works", "works", "fails", "expires", "says", "other"))
      .map(([at, end]) => device(at, end)),
  },
  { weight: 2, arbitrary: fc.tuple(place, fc.constantFrom("leaves", "deleted", "away", "back", "back")).map(([at, change]) => fate(at, change)) },
  { weight: 1, arbitrary: fc.constantFrom(1, 20, 61, 4_400).map(time) },
  { weight: 4, arbitrary: fc.constantFrom(...ROLLOUT_ACTIONS, "resume" as const, "resume" as const, "approve" as const).map(person) },
);
const SETTINGS = fc.record({
  phases: fc.constantFrom(
    [{ percent: 100 }],
    [{ count: 2 }, { percent: 40, requireApproval: true }, { percent: 10 }],
    [
      { count: 6, soakMinutes: 30, minSuccessPercent: 50 },
      { percent: 10, minSuccessPercent: 1 },
    ],
  ),
  maxParallel: fc.constantFrom(1, 50, 50),
  onFailure: fc.constantFrom("pause", "pause", "abort"),
  offlinePolicy: fc.constantFrom("later", "wait", "skip"),
  failureThreshold: fc.constantFrom({ percent: 10 }, { percent: 60 }, { percent: 100, count: 2 }),
  deviceTimeoutMinutes: fc.constant(60),
  approval: fc.constantFrom({ required: false, byOther: false }, { required: false, byOther: false }, { required: true, byOther: false }),
});

interface Seen {
  readonly status: string;
  readonly orders: number;
}
const KINDS = ["pending", "ordered", "verifying", "succeeded", "failed", "timed_out", "skipped", "aborted"] as const;

/** What must always hold; returns what the next look compares with. */
const look = async (life: Life, before: Seen, name: string): Promise<Seen> => {
  const { rolloutId } = life;
  const shown = await read(life, rolloutId);
  const { rows } = await life.world.sql.query("select status, late, position, attempt from rollout_devices where rollout_id = $1", [rolloutId]);
  const count = (status: string): number => rows.filter((row) => row.status === status).length;
  const { total, late, timedOut, ...counts } = shown.counts;
  const actual = Object.fromEntries(KINDS.map((kind) => [kind, count(kind)]));
  expect({ ...counts, timed_out: timedOut }).toEqual(actual);
  expect(total).toBe(rows.length);
  expect(late).toBe(rows.filter((row) => row.late).length);
  let first = 1;
  for (const phase of shown.phases) {
    const own = rows.filter(({ position }) => position >= first && position < first + phase.size);
    const among = (...statuses: readonly string[]): number => own.filter(({ status }) => statuses.includes(status)).length;
    expect(phase).toMatchObject({ succeeded: among("succeeded"), failed: among("failed", "timed_out"), open: among("ordered", "verifying") });
    first += phase.size;
  }
  const orders = await orderedEver(life, rolloutId);
  const attempts = rows.reduce((sum, { attempt }) => sum + attempt, 0);
  expect(orders).toBeLessThanOrEqual(attempts);
  const mayOrder = before.status === "running" || before.status === "waiting_window" || before.status === "scheduled";
  if (name !== "step" || !mayOrder) expect(orders).toBe(before.orders);
  else if (orders > before.orders) {
    const phase = shown.phases[shown.phase - 1];
    expect(counts.ordered + counts.verifying).toBeLessThanOrEqual(shown.settings.maxParallel);
    // Failures that somebody has accepted take no place away, so the ramp without failures bounds all.
    expect(phase.open).toBeLessThanOrEqual(Math.max(5, phase.succeeded));
  }
  if (FINAL.includes(before.status as (typeof FINAL)[number])) expect(shown.status).toBe(before.status);
  return { status: shown.status, orders };
};

/** Fails with the shortest life that breaks an invariant. `world` is one of `startRolloutWorld`. */
export const expectSoundLives = async (world: World, numRuns: number, seed: number): Promise<void> => {
  const tenant = await world.tenant();
  const lives = fc.asyncProperty(SETTINGS, fc.array(HAPPENING, { minLength: HAPPENINGS, maxLength: HAPPENINGS }), async (settings, happenings) => {
    const fleet = await openFleet(world, SIZE, { tenant });
    const life = { ...fleet, rolloutId: await create(fleet, settings) };
    let seen: Seen = { status: "scheduled", orders: 0 };
    try {
      for (const { name, run } of [steps, ...happenings]) {
        await run(life);
        seen = await look(life, seen, name);
      }
    } finally {
      advance(-aheadMs);
      aheadMs = 0;
      // The tenant's live rollouts are limited, and a later life needs no steps of this one.
      await world.sql.query("delete from many_work where record_id = $1", [life.rolloutId]);
      await world.sql.query("update rollouts set status = 'aborted', completed_at = now() where rollout_id = $1", [life.rolloutId]);
    }
  });
  await fc.assert(lives, { numRuns, seed });
};
