// The database can store whatever the contract allows: every field of every operation at its edges. test/contract/bounds.test.ts has the agents' frames.
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Operation } from "../../../protocol/index.ts";
import { isAppError } from "../../../server/core/errors.ts";
import { parseInput } from "../../../server/gateway/rest/parse.ts";
import { jsonSchemaOf } from "../../../server/gateway/rest/rest-input.ts";
import { type Log, silentLog } from "../../../server/platform/telemetry/log.ts";
import { contains, type Edge, edges, nameOfEdge } from "../../contract/edges.ts";
import { type Case, callerFor, isRead, NEEDS_PROVIDER, openStock, REST_CASES, type Stock, sample, send, toRequest } from "../../contract/samples.ts";
import { type Answer, startWorld, type World } from "../../kit/gateway/world.ts";

const OFF = Object.fromEntries(
  ["STANDARD", "TENANT", "AGENT", "HEARTBEAT", "ANONYMOUS", "PAIRING", "INVITES", "FAILED_AUTH", "CONNECT"].map((name) => [`RATE_LIMIT_${name}`, "off"]),
);

let world: World;
let stock: Stock;
/** What the gateway last logged as an error: an answer with status 500 says nothing of its cause. */
let lastError = "";
const log: Log = { ...silentLog, error: ({ error }: { readonly error?: unknown }) => (lastError = inspect(error).slice(0, 2_000)) };
beforeAll(async () => {
  const wide = { TENANTS_PER_USER: "100000", COMMAND_QUEUE_PER_DEVICE: "100000" };
  world = await startWorld({ ...OFF, ...wide }, { inProcess: true, log });
  stock = await openStock(world);
});
afterAll(() => world.close());

type Input = Record<string, unknown>;

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
    if (answer.status >= 500) wrong.push([some.map(nameOfEdge), answer.status, answer.body?.code, lastError]);
    else if (answer.status < 300) for (const name of changedIn(each.id, input, answer)) wrong.push([some.map(nameOfEdge), name, answer.body.data[name]]);
    return answer.status < 300;
  };
};

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
