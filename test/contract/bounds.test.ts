// The database can store whatever the contract allows: every field of every agent frame at its edges, and every number in the column of its name.
// test/release/walls/bounds.test.ts has the fields of the operations.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AgentFrame, Goodbye, Hello, SocketAck, SocketHeartbeat, sign } from "../../protocol/index.ts";
import { type AgentSocket, connect, online } from "../channel/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { type Device, startWorld, type World } from "../kit/gateway/world.ts";
import { boundedNumbers, contains, edges, nameOfEdge } from "./edges.ts";
import { CASES, openStock, type Stock } from "./samples.ts";

const OFF = Object.fromEntries(["AGENT", "ANONYMOUS", "CONNECT", "HEARTBEAT", "PAIRING", "STANDARD", "TENANT"].map((name) => [`RATE_LIMIT_${name}`, "off"]));

let world: World;
let stock: Stock;
beforeAll(async () => {
  world = await startWorld({ ...OFF, FRAMES_PER_SECOND: "10000" }, { inProcess: true });
  stock = await openStock(world);
});
afterAll(() => world.close());

describe("frames", () => {
  const reachable = () => ({ url: world.url.replace(/^http/, "ws"), clock: { now: () => new Date() } });
  /** The first of these frames, or undefined once the socket is closed. */
  const answerOf = (socket: AgentSocket, ...ops: readonly string[]) =>
    eventually(() => {
      const at = socket.frames.findIndex(({ op }) => ops.includes(op));
      if (at === -1 && socket.isOpen()) throw new Error(`none of ${ops.join(", ")}`);
      return socket.frames.splice(at, 1)[0];
    });

  /** The gateway clamps a value out of range. */
  const clampedInFlight = (asked: number): number => Math.min(32, Math.max(1, Math.floor(asked)));

  test("a hello with any field at its edge opens a session, and its values are stored", { timeout: 60_000 }, async () => {
    const wrong: unknown[] = [];
    for (const edge of edges(Hello).filter(({ field }) => field !== "proof")) {
      const device = await stock.tenant.device();
      const socket = await connect(reachable(), device);
      const { data } = await socket.next("welcome");
      const timestamp = new Date().toISOString();
      socket.say("hello", { proof: { timestamp, signature: sign(device.identity.secret, data.nonce, timestamp) }, [edge.field]: edge.value });
      const answer = await answerOf(socket, "ready", "error");
      socket.end();
      const { rows } = await world.sql.query(
        `select p.clock_offset_ms as "clockOffsetMs", p.instance_id as "instanceId", p.max_in_flight as "maxInFlight", d.hostname, d.arch, d.agent_version as "agentVersion"
         from device_presence p join devices d using (device_id) where device_id = $1`,
        [device.deviceId],
      );
      const stored = edge.field === "maxInFlight" ? clampedInFlight(Number(edge.value)) : edge.value;
      const isStored = !(edge.field in rows[0]) || rows[0][edge.field] === stored;
      if (answer?.op !== "ready" || !isStored) wrong.push([nameOfEdge(edge), answer, rows[0]]);
    }
    expect(wrong).toEqual([]);
  });

  test("a heartbeat with any field at its edge is answered, and its metrics are stored", { timeout: 60_000 }, async () => {
    const device = await stock.tenant.device();
    const owner = await stock.tenant.user();
    const socket = await online(reachable(), device);
    const wrong: unknown[] = [];
    for (const edge of edges(SocketHeartbeat)) {
      socket.say("heartbeat", { cpu: 1, [edge.field]: edge.value });
      const answer = await answerOf(socket, "heartbeat_ack", "error");
      await world.app.channel.flush();
      const { metrics } = (await world.call(owner, "GET", `/v1/devices/${device.deviceId}`)).body.data;
      const isStored = edge.field === "metrics" ? contains(metrics, edge.value) : !(edge.field in metrics) || metrics[edge.field] === edge.value;
      if (answer?.op !== "heartbeat_ack" || !isStored) wrong.push([nameOfEdge(edge), answer, metrics]);
    }
    expect(wrong).toEqual([]);
    socket.end();
  });

  test("an ack with any field at its edge is answered, and its output is stored", { timeout: 60_000 }, async () => {
    const device: Device = await stock.tenant.device();
    const owner = await stock.tenant.user();
    const socket = await online(reachable(), device, { maxInFlight: 32 });
    const wrong: unknown[] = [];
    for (const edge of edges(SocketAck).filter(({ field }) => field !== "commandId")) {
      const { commandId } = (await world.call(owner, "POST", `/v1/devices/${device.deviceId}/commands`, { body: { type: "ping" } })).body.data;
      socket.say("ack", { commandId, status: "succeeded", [edge.field]: edge.value });
      const answer = await answerOf(socket, "ack_ok", "error");
      const isAnswered = answer?.op === "ack_ok" || (edge.field === "status" && answer?.op === "error" && answer.data.code === "VALIDATION_FAILED");
      const { ack } = (await world.call(owner, "GET", `/v1/commands/${commandId}`)).body.data;
      if (!isAnswered || (edge.field === "output" && !contains(ack.output, edge.value))) wrong.push([nameOfEdge(edge), answer, ack]);
    }
    expect(wrong).toEqual([]);
    socket.end();
  });

  test("a goodbye with any field at its edge ends the session without an error", { timeout: 60_000 }, async () => {
    for (const edge of edges(Goodbye)) {
      const device = await stock.tenant.device();
      const socket = await online(reachable(), device);
      socket.say("goodbye", { reason: "restart", [edge.field]: edge.value });
      await eventually(async () => {
        const { rows } = await world.sql.query("select session_id from device_presence where device_id = $1", [device.deviceId]);
        // A handoff leaves presence to the session that takes over.
        if (edge.value !== "handoff") expect(rows).toEqual([{ session_id: null }]);
      });
      expect([nameOfEdge(edge), socket.frames.filter(({ op }) => op === "error")]).toEqual([nameOfEdge(edge), []]);
      socket.end();
    }
  });
});

describe("columns", () => {
  const RANGES: Readonly<Record<string, readonly [number, number]>> = {
    smallint: [-(2 ** 15), 2 ** 15 - 1],
    integer: [-(2 ** 31), 2 ** 31 - 1],
    bigint: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    "double precision": [-Number.MAX_VALUE, Number.MAX_VALUE],
  };
  /** Fields whose column has another name. */
  const NAMED: Readonly<Record<string, string>> = { executionTimeoutSeconds: "exec_timeout_s" };
  const columnOf = (name: string): string => NAMED[name] ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

  test("every number that the contract accepts fits the column of its name", async () => {
    const { rows } = await world.sql.query(
      "select table_name, column_name, data_type from information_schema.columns where table_schema = 'public' and data_type = any($1)",
      [Object.keys(RANGES)],
    );
    const fields = [...CASES.map(({ op }) => op.input), AgentFrame].flatMap(boundedNumbers);
    const checked = rows.flatMap(({ table_name, column_name, data_type }) => {
      const [low = 0, high = 0] = RANGES[data_type] ?? [];
      return fields
        .filter(({ name }) => columnOf(name) === column_name)
        .map(({ name, values }) => ({ field: name, column: `${table_name}.${column_name}`, fits: values.every((value) => value >= low && value <= high) }));
    });
    expect(new Set(checked.map(({ field }) => field))).toEqual(
      new Set([
        ...["version", "priority", "maxAttempts", "maxUses", "maxInFlight", "clockOffsetMs", "executionTimeoutSeconds", "offlineAfterSeconds"],
        ...["files", "size", "jitterSeconds", "maxParallel", "perMinute", "part", "phase"],
        ...["targetPort", "listenPort", "port", "metric", "duration", "concurrency", "maxPerSecond", "revision", "timeoutSeconds"],
        ...["amount", "percent", "sharedMonthly", "cpu", "memory", "minutes"],
        ...["requestsPerMinute", "connections", "idleSeconds"],
        ...["threshold", "forSeconds", "clearThreshold", "clearForSeconds", "cooldownSeconds", "count", "windowSeconds"],
      ]),
    );
    // The gateway clamps maxInFlight to 1..32 before it stores it.
    expect(checked.filter(({ field, fits }) => !fits && field !== "maxInFlight")).toEqual([]);
  });

  test("no column limits the length of a text or the digits of a number", async () => {
    const { rows } = await world.sql.query(
      "select table_name, column_name from information_schema.columns where table_schema = 'public' and (character_maximum_length is not null or data_type = 'numeric') and table_name <> '_prisma_migrations'",
    );
    expect(rows).toEqual([]);
  });
});
