// What the gateway says of the standbys behind its database: a takeover loses nothing only where commits wait for one.
import { expect, test } from "vitest";
import { createRig } from "../../chaos/rig/rig.ts";
import { withSql } from "../../chaos/rig/sql.ts";
import { eventually } from "../../kit/checks/eventually.ts";

const TOKEN = "standbys-are-watched-by-their-operator";
const GAUGE = "mooring_database_standby_lag_bytes";

test.for([
  ["sync", "synchronous"],
  ["async", "asynchronous"],
] as const)("a %s standby shows its mode and what it lacks, until it is gone", { timeout: 120_000 }, async ([standby, mode]) => {
  const rig = await createRig({ nodes: 1, seed: 1, standby, env: { INTERNAL_TOKEN: TOKEN, LOG_LEVEL: "info" } });
  try {
    const port = await eventually(() => {
      const found = /"internalPort":(\d+)/.exec(rig.nodes[0]?.said ?? "")?.[1];
      expect(found).toBeDefined();
      return found;
    });
    const read = async (): Promise<readonly string[]> => {
      const page = await fetch(`http://127.0.0.1:${port}/internal/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
      return (await page.text()).split("\n").filter((line) => line.startsWith(`${GAUGE}{`));
    };
    const lag = async (): Promise<number> => Number(/} (\d+)$/.exec((await read())[0] ?? "")?.[1] ?? Number.NaN);
    await eventually(async () => expect(await read()).toEqual([`${GAUGE}{standby="standby",mode="${mode}"} 0`]));
    rig.standby?.line.set({ hold: ["down"] });
    await withSql(rig.postgres, (sql) =>
      sql.query("set synchronous_commit = local; create table filler as select repeat('x', 1000) as text from generate_series(1, 2000)"),
    );
    await eventually(async () => expect(await lag()).toBeGreaterThan(1_000_000));
    rig.standby?.line.calm();
    await eventually(async () => expect(await lag()).toBe(0));
    await rig.standby?.postgres.kill();
    await eventually(async () => expect(await read()).toEqual([]));
  } finally {
    await rig.close();
  }
});
