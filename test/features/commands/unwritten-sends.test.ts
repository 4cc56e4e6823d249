// Commands that a session has sent and that are not written as sent yet: whatever overtakes the write, nothing that the agent has got ends as if it had
// never been sent, and nothing is stranded, sent twice or ended twice. MODEL_RUNS=5000 searches longer, SEED=… repeats a search.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EFFORT, SEED } from "../../kit/gateway/seed.ts";
import type { Sabotage } from "./unwritten-sends/node.ts";
import { type Moment, type Op, type Program, program, STEPS, timeline } from "./unwritten-sends/programs.ts";
import { openStage, type Stage } from "./unwritten-sends/run.ts";

const RUNS = Number(process.env["MODEL_RUNS"] ?? 120 * EFFORT);
const AT_ONCE = 60;
const MS_PER_RUN = 400;

interface Found {
  readonly seed: number;
  readonly message: string;
  readonly moments: readonly Moment[];
  readonly program: Program;
}

const search = async (stage: Stage, runs: number, seed: number): Promise<Found | null> => {
  for (let done = 0; done < runs; done += AT_ONCE) {
    const [moments = []] = fc.sample(timeline, { seed: seed + done, numRuns: 1 });
    const programs = fc.sample(program, { seed: seed + done, numRuns: Math.min(AT_ONCE, runs - done) });
    const found = await stage.run(moments, programs);
    if (found === null) continue;
    const last = found.step < 0 ? STEPS : found.step + 1;
    const one = programs[found.device] ?? { lists: false, acts: [] };
    return { seed, message: found.message, moments: moments.slice(0, last), program: { ...one, acts: one.acts.slice(0, last) } };
  }
  return null;
};

const SHRINKING_MS = 10_000;
/** The shortest program that still breaks a promise. */
const shrink = async (stage: Stage, found: Found): Promise<Found> => {
  let shortest = found;
  const until = performance.now() + SHRINKING_MS;
  for (let at = 0; at < shortest.moments.length && performance.now() < until; at += 1) {
    const without = <T>(items: readonly T[]): readonly T[] => items.filter((_, index) => index !== at);
    const tried = { ...shortest, moments: without(shortest.moments), program: { ...shortest.program, acts: without(shortest.program.acts) } };
    const again = await stage.run(tried.moments, [tried.program]);
    if (again === null) continue;
    shortest = { ...tried, message: again.message };
    at = -1;
  }
  return shortest;
};

const describeFound = ({ seed, message, moments, program: { lists, acts } }: Found): string =>
  [`${message}\nSEED=${seed}, lists ${lists}:`, ...moments.map((moment, at) => JSON.stringify({ ...moment, ...acts[at] }))].join("\n");

describe("commands in hand", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage();
  });
  afterAll(() => stage.close());

  test(`what was sent and not written yet keeps its promises through ${RUNS} programs of ${STEPS} steps (seed ${SEED})`, {
    timeout: 60_000 + RUNS * MS_PER_RUN,
  }, async () => {
    const found = await search(stage, RUNS, SEED);
    if (found !== null) expect.fail(describeFound(await shrink(stage, found)));
  });
});

const without =
  (guard: string, instead: string) =>
  (text: string): string =>
    text.replaceAll(guard, instead);
const HELLO: Op = { kind: "hello", at: 0 };
const CUT: Op = { kind: "bus", is: "refusing" };
const create = (lifeMs: number | null = null): Op => ({ kind: "create", at: 0, lane: null, safe: true, asksAck: true, lifeMs });
const cancel: Op = { kind: "cancel", at: 1, of: 0 };
/** Each control, and the shortest story that needs what it leaves out. */
const CONTROLS: readonly (readonly [what: string, sabotage: Sabotage, story: readonly Op[]])[] = [
  ["answers a canceller without writing", { settlesUnasked: true }, [HELLO, create(), cancel]],
  ["ends sessions without writing", { endsUnwritten: true }, [HELLO, create(), { kind: "end" }, cancel]],
  [
    "ends commands whatever happened to them since",
    { sql: without("and o.revision = v.revision offset 0", "and v.revision is not null offset 0") },
    [HELLO, create(), CUT, cancel, { kind: "ack", at: 0, of: 0, word: "succeeded" }],
  ],
  [
    "expires commands without a grace",
    { sql: without("and (q.status <> 'queued' or q.deadline_at <= now() - $2 * interval '1 millisecond')", "and $2::float8 is not null") },
    [HELLO, create(150), CUT],
  ],
  [
    "lets polls take what the socket has just sent",
    { sql: without("then $6 * interval '1 millisecond'", "then 0 * $6 * interval '1 millisecond'") },
    [HELLO, create(), { kind: "poll", at: 1 }],
  ],
];

test.each(CONTROLS)("a queue that %s breaks a promise", async (_, sabotage, story) => {
  // Less than the write-behind takes, in the last step.
  const moments = story.map((_op, at) => ({ advanceMs: at === story.length - 1 ? 160 : 0, reaps: true }));
  const programs = [{ lists: false, acts: story.map((op) => ({ op, beside: null })) }];
  const [honest, sabotaged] = [await openStage(), await openStage(sabotage)];
  expect(await honest.run(moments, programs)).toBeNull();
  expect(await sabotaged.run(moments, programs)).not.toBeNull();
  await Promise.all([honest.close(), sabotaged.close()]);
});
