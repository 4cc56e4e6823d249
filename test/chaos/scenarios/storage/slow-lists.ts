// Lists that take far too long: one key reads many of them at once, while everybody else goes on.
import { pause, systemTime as time } from "../../../../agent-sim/agent/index.ts";
import { type Breaks, breakBuild } from "../../rig/broken-build.ts";
import { headersOf, orNoAnswer, tally } from "../../rig/calls.ts";
import { type Rig, withRig } from "../../rig/rig.ts";
import { ROWS_ARE_SLOW } from "../../rig/sabotage.ts";
import { ask } from "../../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";
import { runGapTrial } from "./gap-trial.ts";

const READERS = 25;
const GAP_MS = { full: 20_000, short: 10_000 };
const ASK_EVERY_MS = 50;
const LOOK_MS = 500;
/** Refused readers wait this long before they ask again. */
const AGAIN_MS = 200;
/** More than the first page of a list. */
const ROWS = 200;

/** What the product was: one pool for all work, a probe too, and no time limit of a list but that of the call. */
const UNDIVIDED: Breaks = {
  "server/platform/installation.js": { "bulkheads: bulkheadsOf(config),": "", "config.DATABASE_LIST_SECONDS * 1_000": "8_000" },
  "server/platform/database/db.js": { "condition: condition.read,": "condition: () => pool.query('select 1').then(condition.read)," },
};

/** Ended commands of the tenant, whose rows are slow to read. */
const fill = (rig: Rig, tenantId: string) =>
  ask(
    rig.postgres,
    `insert into commands (tenant_id, command_id, device_id, seq, lane, type, payload, issued_at, available_at, exec_timeout_s, created_by, status, finished_at,
       attempt, output_truncated, late, history)
     select $1, 'cmd_' || lpad(n::text, 26, '0'), 'dev_' || lpad('', 26, '0'), n, 'main', 'slow', '{}', now(), now(), 60, 'x', 'succeeded', now(), 1, false, false, '[]'
       from generate_series(1, ${ROWS}) n`,
    [tenantId],
  );

/** Reads lists and looks at readiness; the returned function ends both. */
const readLists = async (rig: Rig, counts: { readonly lists: Map<string, number>; unready: number }) => {
  const reader = await rig.tenant();
  await fill(rig, reader.tenantId);
  let isOn = true;
  const read = async (): Promise<void> => {
    while (isOn) {
      const answer = await orNoAnswer(rig.http.call({ method: "GET", path: "/v1/commands?pageSize=100", headers: headersOf(reader) }));
      tally(counts.lists, String(answer?.status ?? "no answer"));
      if (answer?.status !== 200) await pause(time, AGAIN_MS);
    }
  };
  const look = async (): Promise<void> => {
    for (; isOn; await pause(time, LOOK_MS)) {
      const answer = await orNoAnswer(rig.http.call({ method: "GET", path: "/v1/health/ready" }));
      if (answer?.status !== 200) counts.unready += 1;
    }
  };
  const all = [look(), ...Array.from({ length: READERS }, read)];
  return async (): Promise<void> => {
    isOn = false;
    await Promise.all(all);
  };
};

const readBeside = async (context: Context): Promise<ScenarioOutcome> => {
  const root = context.control ? await breakBuild(UNDIVIDED) : undefined;
  return withRig({ nodes: 1, seed: context.seed, root, sabotage: ROWS_ARE_SLOW, env: { DATABASE_TENANT_PERCENT: "50" } }, async (rig) => {
    const counts = { lists: new Map<string, number>(), unready: 0 };
    const words = `one key reads ${READERS} lists at once, whose rows take 0.1 s each`;
    const { answers, ...trial } = await runGapTrial({ rig, context, gapMs: GAP_MS, words, askEveryMs: ASK_EVERY_MS, begin: () => readLists(rig, counts) });
    const { "2xx meanwhile": stored, waited, ...refused } = answers;
    const lists = [...counts.lists].map(([status, count]) => `${count} ${status}`).join(", ");
    return {
      ...trial,
      violations: {
        ...trial.violations,
        "refused-beside-lists": Object.values(refused).reduce((sum, count) => sum + count, 0),
        "not-ready": counts.unready,
        "no-list-was-slow": counts.lists.has("503") ? 0 : 1,
      },
      notes: [...trial.notes, `another tenant's creates: ${stored + waited} stored; the lists were answered ${lists}`],
    };
  });
};

export const slowListScenarios: readonly Scenario[] = [
  {
    name: "slow-lists",
    promise: "R14",
    claim: `${READERS} lists at once that take too long, read by one key, leave the creates of other tenants, their agents and readiness alone`,
    control: {
      how: "all work and the probe share one pool of sessions, and lists have no time limit of their own",
      red: ["refused-beside-lists", "not-ready"],
    },
    run: readBeside,
  },
];
