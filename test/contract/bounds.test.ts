// The database can store whatever the contract allows: every field of every operation and every agent frame at its edges.
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AgentFrame, Goodbye, Hello, type Operation, SocketAck, SocketHeartbeat, sign } from "../../protocol/index.ts";
import { isAppError } from "../../server/core/errors.ts";
import { parseInput } from "../../server/gateway/rest/parse.ts";
import { jsonSchemaOf } from "../../server/gateway/rest/rest-input.ts";
import { type Log, silentLog } from "../../server/platform/telemetry/log.ts";
import { type AgentSocket, connect, online } from "../channel/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { type Answer, type Device, startWorld, type World } from "../kit/gateway/world.ts";
import { boundedNumbers, type Edge, edges } from "./edges.ts";
import { CASES, type Case, callerFor, NEEDS_PROVIDER, openStock, REST_CASES, type Stock, sample, send, toRequest } from "./samples.ts";

const OFF = Object.fromEntries(
  ["STANDARD", "TENANT", "AGENT", "HEARTBEAT", "ANONYMOUS", "PAIRING", "INVITES", "FAILED_AUTH", "CONNECT"].map((name) => [`RATE_LIMIT_${name}`, "off"]),
);

let world: World;
let stock: Stock;
/** What the gateway last logged as an error: an answer with status 500 says nothing of its cause. */
let lastError = "";
const log: Log = { ...silentLog, error: ({ error }: { readonly error?: unknown }) => (lastError = inspect(error).slice(0, 2_000)) };
beforeAll(async () => {
  const wide = { FRAMES_PER_SECOND: "10000", TENANTS_PER_USER: "100000", COMMAND_QUEUE_PER_DEVICE: "100000" };
  world = await startWorld({ ...OFF, ...wide }, { inProcess: true, log });
  stock = await openStock(world);
});
afterAll(() => world.close());

type Input = Record<string, unknown>;
const nameOf = ({ field, value }: Edge): string => `${field} = ${(JSON.stringify(value) ?? "undefined").slice(0, 80)}`;
const isTime = (value: unknown): value is string => typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value);

/** Whether the answer contains everything that was sent. Times are stored in milliseconds, and -0 as 0. */
const contains = (shown: unknown, sent: unknown): boolean => {
  if (isTime(sent) && isTime(shown)) return Math.abs(Date.parse(sent) - Date.parse(shown)) <= 1;
  if (typeof sent !== "object" || sent === null) return shown === sent || (sent === 0 && shown === 0);
  if (typeof shown !== "object" || shown === null) return false;
  return Object.entries(sent).every(([name, value]) => contains((shown as Record<string, unknown>)[name], value));
};

/** Fields with another value in the answer, each for a reason. */
const NOT_REPEATED: Readonly<Record<string, string>> = {
  version: "each change increments it",
  notBefore: "a time in the past becomes now",
};

/** Here the record tells what is, and the caller what should be, or what it waits for. */
const FOLLOWS: ReadonlySet<string> = new Set([
  ...["apps.change.status", "deployments.change.status"],
  ...["backups.wait.status", "backups.waitRestore.status"],
  // The record says how the data was kept consistent, and a checksum with its kind.
  ...["backups.create.consistency", "backups.report.checksum", "backups.reportChange.checksum"],
  ...[
    "apps.wait.status",
    "deployments.wait.status",
    "devices.wait.status",
    "bulkOperations.wait.status",
    "rollouts.wait.status",
    "dataExports.wait.status",
    "imports.wait.status",
  ],
  // The child of a rollback has an id of its own, and the settings of a rollout are completed.
  ...["rollouts.preview.conflicts", "rollouts.create.settings", "rollouts.rollback.rolloutId"],
  // `active` starts the tunnel, and its device makes it so; the tenant's name is added to the host name.
  ...["tunnels.update.status", "tunnels.create.hostname", "tunnels.update.hostname"],
  // The record says how the targets were chosen, and not which.
  "bulkOperations.create.target",
]);

/** The sent fields that the answer shows with another value. */
const changedIn = (id: string, sent: Readonly<Record<string, unknown>>, { body }: Answer): readonly string[] => {
  const shown = body?.data;
  if (typeof shown !== "object" || shown === null) return [];
  return Object.keys(sent).filter((name) => name in shown && !(name in NOT_REPEATED) && !FOLLOWS.has(`${id}.${name}`) && !contains(shown[name], sent[name]));
};

/** What every call goes through before its operation sees the input. */
const isAccepted = ({ op }: Case, input: Input): boolean => {
  try {
    parseInput(op, JSON.parse(JSON.stringify(input)));
    return true;
  } catch (error) {
    if (isAppError(error)) return false;
    throw error;
  }
};

/** The first edges of all fields, then the second ones, and so on. */
const roundsOf = (all: readonly Edge[]): readonly (readonly Edge[])[] => {
  const byField = [...new Set(all.map(({ field }) => field))].map((name) => all.filter(({ field }) => field === name));
  const longest = Math.max(0, ...byField.map((own) => own.length));
  return Array.from({ length: longest }, (_, nth) => byField.flatMap((own) => own[nth] ?? []));
};

/** Fields that an earlier operation was tried with, by name and schema. */
const tried = new Set<string>();
/** All edges of a field that no operation has had before, else its first, its last and its longest: alike fields are read and judged by the same code. */
const fewerOfKnown = (op: Operation, all: readonly Edge[]): readonly Edge[] => {
  const { properties = {} } = jsonSchemaOf(op.input, "input") as { readonly properties?: Readonly<Record<string, unknown>> };
  return [...new Set(all.map(({ field }) => field))].flatMap((field) => {
    const own = all.filter((edge) => edge.field === field);
    const kind = `${field} ${JSON.stringify(properties[field])}`;
    if (!tried.has(kind)) {
      tried.add(kind);
      return own;
    }
    const lengths = own.map(({ value }) => JSON.stringify(value)?.length ?? 0);
    return [...new Set([own[0], own[lengths.indexOf(Math.max(...lengths))], own.at(-1)])].filter((edge) => edge !== undefined);
  });
};

/** A machine that does much else may answer that it is busy, and the caller then asks again. */
const sendUntilNotBusy = async (each: Case, input: Input): Promise<Answer> => {
  const once = () => send(stock, callerFor(each, stock), "/v1", toRequest(each.op, input));
  let answer = await once();
  for (let again = 0; answer.body?.code === "DATABASE_BUSY" && again < 3; again += 1) answer = await once();
  return answer;
};

/** Calls an operation with edges in place of a sample's values, and notes what is wrong with the answers. */
const trying = (each: Case, wrong: unknown[]) => {
  let kept: Input | null = null;
  return async (some: readonly Edge[]): Promise<boolean> => {
    const base = kept ?? (await sample(each, stock));
    const input = { ...base, ...Object.fromEntries(some.map(({ field, value }) => [field, value])) };
    const answer = await sendUntilNotBusy(each, input);
    // A refused call leaves its sample as it was, and a read any other.
    kept = answer.status >= 400 || isRead(each) ? base : null;
    if (answer.status >= 500) wrong.push([some.map(nameOf), answer.status, answer.body?.code, lastError]);
    else if (answer.status < 300) for (const name of changedIn(each.id, input, answer)) wrong.push([some.map(nameOf), name, answer.body.data[name]]);
    return answer.status < 300;
  };
};
const isRead = ({ op }: Case): boolean => op.kind === "query" && op.replay === "repeatable";

describe("operations", () => {
  const called = REST_CASES.filter(({ id }) => !NEEDS_PROVIDER.has(id));
  // Reads first: later, lists and exports have thousands of rows.
  const inOrder = [...called.filter(isRead), ...called.filter((each) => !isRead(each))];
  test.each(inOrder.map((each) => [each.id, each] as const))("%s accepts every field at its edges and returns the same values", async (_, each) => {
    const wrong: unknown[] = [];
    const attempt = trying(each, wrong);
    const good = await sample(each, stock);
    // Long polls have tests of their own and would only slow this one down.
    const accepted = fewerOfKnown(each.op, edges(each.op.input)).filter(
      ({ field, value }) => field !== "wait" && isAccepted(each, { ...good, [field]: value }),
    );
    // Fields whose edge, an unknown id for instance, refuses the whole call go alone.
    const loners = new Set<string>(accepted.map(({ field }) => field).filter((field) => field.endsWith("Id")));
    for (const round of isRead(each) ? [] : roundsOf(accepted)) {
      const together = round.filter(({ field }) => !loners.has(field));
      const alone = round.filter(({ field }) => loners.has(field));
      if (together.length > 0 && !(await attempt(together))) alone.push(...together);
      for (const edge of alone) if (!(await attempt([edge]))) loners.add(edge.field);
    }
    // One condition of a list must not hide what another would find.
    if (isRead(each)) for (const edge of accepted) await attempt([edge]);
    expect(wrong.map((one) => JSON.stringify(one))).toEqual([]);
  });
});

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
      if (answer?.op !== "ready" || !isStored) wrong.push([nameOf(edge), answer, rows[0]]);
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
      if (answer?.op !== "heartbeat_ack" || !isStored) wrong.push([nameOf(edge), answer, metrics]);
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
      if (!isAnswered || (edge.field === "output" && !contains(ack.output, edge.value))) wrong.push([nameOf(edge), answer, ack]);
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
      expect([nameOf(edge), socket.frames.filter(({ op }) => op === "error")]).toEqual([nameOf(edge), []]);
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
