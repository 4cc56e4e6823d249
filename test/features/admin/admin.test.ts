// The operations on the installation itself: nodes are listed while they live, and any node can drain any other.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { newId } from "../../../server/core/ids.ts";
import { createAdmin, type ThisNode } from "../../../server/features/admin/index.ts";
import { openMemoryBus } from "../../../server/platform/cluster/bus-memory.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { createJobBook } from "../../../server/platform/jobs.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { committing } from "../../kit/gateway/call.ts";
import { anonymous, type Caller, startWorld, type World } from "../../kit/gateway/world.ts";
import { createTestDatabase, namedStatements } from "../../kit/stores/database.ts";

const NEVER = new AbortController().signal;
const call = {
  scope: { requestId: "r", ip: "::1", traceparent: null, tenantId: null, tenant: null, principal: null },
  reply: { headers: {} },
  signal: NEVER,
  idempotencyKey: null,
};
const fail = (code: string): never => {
  throw new Error(code);
};

const DEAD_PID = 4_711;

describe("nodes", () => {
  let db: Db;
  beforeAll(async () => {
    db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 4, log: silentLog, namedStatements });
  });
  afterAll(() => db.close());

  const start = (
    given: {
      readonly nodeId?: string;
      readonly pid?: number;
      readonly bus?: ReturnType<typeof openMemoryBus>;
      readonly connections?: number;
      readonly through?: Db;
    } = {},
  ) => {
    const state = { draining: false };
    const nodeId = given.nodeId ?? newId("node");
    const { pid = 1, connections = 0, bus = openMemoryBus() } = given;
    const node: ThisNode = {
      report: () => ({ nodeId, address: "http://here", host: "host", pid, version: "1", draining: state.draining, overloaded: false, connections, ready: 0 }),
      drain: () => {
        state.draining = true;
      },
    };
    const feature = createAdmin({
      ownListeners: { published: () => [], learn: () => undefined },
      db: given.through ?? db,
      bus,
      node,
      channelOf: (id) => `node:${id}`,
      lives: async (pid) => pid !== DEAD_PID,
      clock: systemClock,
      book: createJobBook(systemClock),
      anyTenant: {} as never,
      anyDevice: {} as never,
      commands: {} as never,
      outbox: {} as never,
      plan: {} as never,
      grantPlan: async () => undefined,
      stuck: () => [],
      settings: { expireSeconds: 15 },
    });
    const beat = async () => void (await feature.jobs.find(({ name }) => name === "nodes.beat")?.run(NEVER));
    const list = async () => (await feature.handlers.listNodes({ ...call, fail } as never, {})).items.map((item) => item.nodeId);
    const drain = async (other: string) => (await feature.handlers.drainNode({ ...call, fail, commit: committing(db) } as never, { nodeId: other })).result;
    return { feature, state, nodeId, beat, list, drain };
  };
  const age = (nodeId: string, seconds: number) =>
    db.query("update gateway_nodes set seen_at = now() - make_interval(secs => $2) where node_id = $1", [nodeId, seconds]);
  const empty = () => db.query("delete from gateway_nodes");

  test("a node is listed until 15 seconds after its last beat, and again with its next one", async () => {
    await empty();
    const [one, two] = [start(), start()];
    await one.feature.open();
    await two.feature.open();
    expect((await one.list()).sort()).toEqual([one.nodeId, two.nodeId].sort());
    await age(two.nodeId, 14);
    expect(await one.list()).toContain(two.nodeId);
    // A second more than the bound, as the machine's clock may be set back between the two statements.
    await age(two.nodeId, 16);
    expect(await one.list()).toEqual([one.nodeId]);
    await two.beat();
    expect(await one.list()).toContain(two.nodeId);
  });

  test("a killed node leaves the list once another node starts on its machine", async () => {
    await empty();
    const [killed, living, newcomer] = [start({ pid: DEAD_PID }), start(), start()];
    await killed.beat();
    await living.beat();
    await newcomer.feature.open();
    expect((await newcomer.list()).sort()).toEqual([living.nodeId, newcomer.nodeId].sort());
  });

  test("a node counts the living nodes that do not drain, itself included, and all their sockets", async () => {
    await empty();
    const [one, two, three] = [start({ connections: 5 }), start({ connections: 7 }), start({ connections: 11 })];
    for (const { beat } of [three, two, one]) await beat();
    expect([one.feature.liveNodes(), one.feature.connections()]).toEqual([3, 23]);
    await age(three.nodeId, 16);
    two.state.draining = true;
    await two.beat();
    await one.beat();
    expect([one.feature.liveNodes(), one.feature.connections()]).toEqual([1, 5]);
  });

  test("a node removes its row when it closes, but not the row of a newer process with its name", async () => {
    await empty();
    const old = start({ pid: 1 });
    await old.feature.open();
    const young = start({ nodeId: old.nodeId, pid: 2 });
    await young.feature.open();
    await old.feature.close();
    expect(await young.list()).toEqual([old.nodeId]);
    await young.feature.close();
    expect(await young.list()).toEqual([]);
  });

  test("a node that closes while it writes its row leaves none", async () => {
    await empty();
    let release = (): void => undefined;
    let held = Promise.resolve();
    const through: Db = { ...db, query: async <Row>(text: string, values?: readonly unknown[]) => held.then(() => db.query<Row>(text, values)) };
    const closing = start({ through });
    await closing.feature.open();
    held = new Promise((resolve) => (release = resolve));
    const beating = closing.beat();
    const closed = closing.feature.close();
    // Time for a close that would not wait.
    for (let round = 0; round < 100; round += 1) if ((await db.query("select 1 from gateway_nodes")).length === 0) break;
    release();
    await Promise.all([beating, closed]);
    expect(await start().list()).toEqual([]);
  });

  test("a node drains when it is told over the bus, or with its next beat when that message was lost", async () => {
    const bus = openMemoryBus();
    const [teller, hears, deaf] = [start({ bus }), start({ bus }), start()];
    for (const { feature } of [teller, hears, deaf]) await feature.open();
    await teller.drain(hears.nodeId);
    await eventually(() => expect(hears.state.draining).toBe(true));
    await teller.drain(deaf.nodeId);
    expect(deaf.state.draining).toBe(false);
    await deaf.beat();
    expect(deaf.state.draining).toBe(true);
  });

  test("an order to drain does not reach the next process of that name", async () => {
    const old = start({ pid: 1 });
    await old.feature.open();
    await old.drain(old.nodeId);
    const young = start({ nodeId: old.nodeId, pid: 2 });
    await young.feature.open();
    expect(young.state.draining).toBe(false);
  });

  test("a dead node cannot be drained", async () => {
    const gone = start();
    await gone.feature.open();
    await age(gone.nodeId, 16);
    await expect(gone.drain(gone.nodeId)).rejects.toThrow("NODE_NOT_FOUND");
  });
});

describe("over HTTP", () => {
  let world: World;
  let operator: Caller;
  beforeAll(async () => {
    world = await startWorld();
    operator = await world.operator();
  });
  afterAll(() => world.close());

  test("a node lists itself with its sockets", async () => {
    const { body } = await world.call(operator, "GET", "/v1/admin/nodes");
    expect(body.data).toMatchObject([{ nodeId: world.app.nodeId, address: world.url, pid: process.pid, draining: false, connections: 0 }]);
  });

  test("a drained node reports that it is not ready", async () => {
    expect((await world.call(operator, "POST", `/v1/admin/nodes/${world.app.nodeId}/drain`)).status).toBe(200);
    await eventually(async () => expect((await world.call(anonymous, "GET", "/v1/health/ready")).status).toBe(503));
  });
});
