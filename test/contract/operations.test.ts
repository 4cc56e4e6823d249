// Every operation keeps what its declaration promises: credentials, roles, tenant isolation, validation and schema, under both prefixes, over REST and tRPC.
// The calls that succeed go over HTTP, under each prefix and as tRPC; all others, here and in the walls beside, go to the transport in this process.
// Which role may call what is tried once, over tRPC, by the matrix beside; REST gets its scope from the same function.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Operation } from "../../protocol/index.ts";
import { newId } from "../../server/core/ids.ts";
import { type Answer, anonymous, type Caller, startWorld, type World } from "../kit/gateway/world.ts";
import { CASES, type Case, callerFor, isRead, NEEDS_PROVIDER, openStock, overHttp, REST_CASES, type Stock, sample, send, toRequest } from "./samples.ts";

const FREE = {
  RATE_LIMIT_ANONYMOUS: "off",
  RATE_LIMIT_PAIRING: "off",
  RATE_LIMIT_INVITES: "off",
  RATE_LIMIT_AGENT: "off",
  RATE_LIMIT_HEARTBEAT: "off",
  RATE_LIMIT_FAILED_AUTH: "off",
  TENANTS_PER_USER: "100",
};

let world: World;
let ours: Stock;
let theirs: Stock;

beforeAll(async () => {
  world = await startWorld(FREE, { inProcess: true });
  ours = await openStock(world);
  theirs = await openStock(world);
});
afterAll(() => world.close());

const needsCredential = REST_CASES.filter(({ op }) => !op.auth.includes("public"));
const named = (cases: readonly Case[]) => cases.map((each) => [each.id, each] as const);

/** The answer without the fields that differ between calls. */
const timeless = (body: unknown): unknown =>
  JSON.parse(JSON.stringify(body, (name, value) => (["timestamp", "requestId", "meta"].includes(name) ? undefined : value)));

describe("credentials", () => {
  test.each(named(needsCredential))("%s refuses a call without a credential", async (_, { op }) => {
    const answer = await send(ours, anonymous, "/v1", toRequest(op, await sample({ id: "health.check", op }, ours)));
    expect([answer.status, answer.body.code]).toEqual([401, "UNAUTHORIZED"]);
  });

  test.each(named(needsCredential))("%s refuses kinds of credentials that it does not declare", async (_, each) => {
    const callers: Record<string, Caller> = { user: ours.owner, apiKey: ours.tenant.apiKey, agent: ours.device.as };
    const shared = REST_CASES.filter(({ op }) => op.rest[0] === each.op.rest[0]).flatMap(({ op }) => op.auth);
    const others = Object.keys(callers).filter((kind) => !shared.includes(kind as "user"));
    if (others.length === 0) return;
    // The kind is judged before the input is read; the matrix calls with valid ones. No kind is refused because the device is another's.
    const request = toRequest(each.op, { deviceId: ours.device.deviceId });
    for (const kind of others) {
      const answer = await send(ours, callers[kind] ?? anonymous, "/v1", request);
      expect([kind, answer.status, answer.body.code]).toEqual([kind, 403, "FORBIDDEN"]);
    }
  });
});

describe("signatures", () => {
  const SECRET = /secret|token|password|private|apikey/i;
  const namesOf = (schema: unknown): readonly string[] =>
    Object.entries((schema ?? {}) as Record<string, unknown>).flatMap(([name, part]) => [
      ...(name === "properties" ? Object.keys(part as object) : []),
      ...(typeof part === "object" ? namesOf(part) : []),
    ]);
  const secretsOf = ({ op }: Case): readonly string[] => namesOf(z.toJSONSchema(op.output, { unrepresentable: "any" })).filter((name) => SECRET.test(name));
  /** It says which secrets an app has; their values come from `apps.secrets`. */
  const NAMES_ONLY = "agent.desiredState";
  const forAgents = CASES.filter(({ id, op }) => op.auth.includes("agent") && id !== NAMES_ONLY);

  test.each(named(forAgents.filter((each) => secretsOf(each).length > 0)))("%s returns a secret, so it accepts no signature twice", (_, { op }) => {
    expect(op.replay).toBe("once");
  });

  test("their output schemas tell which operations return a secret", () => {
    expect(forAgents.filter((each) => secretsOf(each).length > 0).map(({ id }) => id)).toEqual([
      "devices.secrets",
      "devices.rotateSecret",
      "backups.access",
      "backupDestinations.access",
    ]);
  });
});

describe("tenant isolation", () => {
  const IDS = ["deviceId", "commandId", "tenantId", "tenant_id", "keyId", "tokenId", "pairingCode", "deploymentId", "inviteId", "roleId", "memberId"];
  const idsIn = (op: Operation) =>
    Object.keys((z.toJSONSchema(op.input, { io: "input", unrepresentable: "any" }) as { properties?: object }).properties ?? {}).filter((name) =>
      IDS.includes(name),
    );
  const isolated = needsCredential.filter(({ op }) => idsIn(op).length > 0 && op.tenancy === "tenant");

  test.each(named(isolated))("%s answers another tenant's id exactly like an unknown id", async (_, each) => {
    const foreign = await sample(each, theirs);
    const caller = callerFor(each, ours);
    // A built-in role has the same key in every tenant.
    for (const field of idsIn(each.op).filter((name) => name in foreign && foreign[name] !== "viewer")) {
      const unknown = field === "pairingCode" ? "BBBB-BBBB" : `${String(foreign[field]).slice(0, 4)}${newId("x").slice(2)}`;
      const answers = [];
      for (const value of [foreign[field], unknown]) {
        const answer = await send(ours, caller, "/v1", toRequest(each.op, { ...foreign, [field]: value }));
        answers.push([answer.status, JSON.stringify(timeless(answer.body)).replaceAll(String(value), "ID")]);
      }
      expect(answers[0]).toEqual(answers[1]);
      const [status] = answers[0] ?? [];
      expect(caller.kind === "agent" ? [403, 404] : [404]).toContain(status);
    }
  });
});

const isUnary = ({ op }: Case): boolean => op.kind !== "subscription" && op.plain?.pieces !== true;
const propertiesOf = (op: Operation) =>
  z.toJSONSchema(op.input, { io: "input", unrepresentable: "any" }) as { properties?: Record<string, object>; additionalProperties?: boolean };
const trpc = (each: Case, as: Caller, input: unknown, call = world.call): Promise<Answer> =>
  each.op.kind === "query"
    ? call(as, "GET", `/trpc/${each.id}?input=${encodeURIComponent(JSON.stringify(input))}`)
    : call(as, "POST", `/trpc/${each.id}`, { body: input });

describe.each(named(REST_CASES.filter(({ id }) => !NEEDS_PROVIDER.has(id))))("%s", (_, each) => {
  /** A valid input. One that a change has not used up serves again: a refusal leaves it as it was, and a read does so, too. */
  let unused: Record<string, unknown> | undefined;
  const valid = async (): Promise<Record<string, unknown>> => {
    unused ??= await sample(each, ours);
    return unused;
  };
  const toUse = async (): Promise<Record<string, unknown>> => {
    const input = await valid();
    if (!isRead(each)) unused = undefined;
    return input;
  };

  test("refuses invalid input in the same way under both prefixes", async () => {
    const good = await valid();
    const { properties = {}, additionalProperties } = propertiesOf(each.op);
    const field = Object.keys(properties).find((name) => !each.op.rest[0]?.includes(`{${name}}`));
    // A strict input refuses an unknown key; an open one (for agents) refuses a value of the wrong type.
    const bad = additionalProperties === false ? { ...good, unknownKey: 1 } : field === undefined ? null : { ...good, [field]: { wrong: [] } };
    if (bad === null) return expect(Object.keys(properties)).toEqual([]);
    const answers = [];
    for (const prefix of ["/v1", "/api/v1"] as const) answers.push(await send(ours, callerFor(each, ours), prefix, toRequest(each.op, bad)));
    const [b, a] = answers;
    expect([b?.status, b?.body.code, a?.status, a?.body.code]).toEqual([400, "VALIDATION_FAILED", 400, "VALIDATION_FAILED"]);
    expect(a?.body.error).toBe(b?.body.error.message);
    expect(timeless({ ...a?.body, error: null })).toEqual(timeless({ ...b?.body, error: null }));
  });

  test("returns what its schema declares, the same under both prefixes", async () => {
    const shapes = [];
    for (const prefix of ["/v1", "/api/v1"] as const) {
      const answer = await send(overHttp(ours), callerFor(each, ours), prefix, toRequest(each.op, await toUse()));
      expect([answer.status, answer.body?.code ?? null]).toEqual([each.op.status, null]);
      expect(answer.headers.get("x-request-id")).toBeTruthy();
      if (each.op.status === 303) expect(answer.headers.get("location")).toBeTruthy();
      if (each.op.status === 204 || each.op.status === 303) {
        expect(answer.body).toBeNull();
        continue;
      }
      if (each.op.kind === "subscription") {
        const [first = ""] = answer.body.split("\n\n");
        expect([answer.headers.get("content-type"), each.op.output.safeParse(JSON.parse(first.replace("data: ", ""))).success]).toEqual([
          "text/event-stream",
          true,
        ]);
        shapes.push(typeof answer.body);
        continue;
      }
      if (each.op.plain !== undefined) {
        expect([answer.headers.get("content-type"), answer.headers.has("content-disposition")]).toEqual([
          each.op.plain.type,
          each.op.plain.filename !== undefined,
        ]);
        expect(each.op.output.safeParse(answer.body).success).toBe(true);
        shapes.push(typeof answer.body);
        continue;
      }
      if (each.op.otlp === true) {
        expect(each.op.output.safeParse(answer.body).success).toBe(true);
        shapes.push(typeof answer.body);
        continue;
      }
      expect(answer.body.success).toBe(true);
      expect(answer.body.meta.requestId).toBe(answer.headers.get("x-request-id"));
      const result = each.op.list === undefined ? answer.body.data : { ...answer.body, items: answer.body.data, total: answer.body.meta.pagination?.total };
      expect(each.op.output.safeParse(result).error?.issues ?? []).toEqual([]);
      if (each.op.list === "page" || each.op.list === "offset")
        expect(Object.keys(answer.body.meta.pagination).sort()).toEqual([
          "hasMore",
          "hasNext",
          "hasPrev",
          "limit",
          "nextCursor",
          "offset",
          "page",
          "pageSize",
          "total",
          "totalPages",
        ]);
      shapes.push(Object.keys(answer.body).sort());
    }
    expect(shapes[0]).toEqual(shapes[1]);
  });

  if (!isUnary(each)) return;
  test("returns the same over tRPC as over REST", async () => {
    const caller = callerFor(each, ours);
    const input = await toUse();
    const over = await trpc(each, caller, input, world.callOverHttp);
    expect([over.status, over.body.error ?? null]).toEqual([200, null]);
    expect(each.op.output.safeParse(over.body.result.data).error?.issues ?? []).toEqual([]);
    if (each.op.kind !== "query" || each.op.status === 204 || each.op.status === 303) return;
    // Reads the same record over each transport. Only times and counters may differ.
    const still = (value: unknown) =>
      JSON.parse(
        JSON.stringify(value, (name, part) =>
          /timestamp|uptime|serverTime|durationMs|latencyMs|resetAt|seenAt|remaining|lastUsed|lastUpdated|lastSeen|attempts|delivery|recentActivity|exportedAt|^nodes$/i.test(
            name,
          )
            ? undefined
            : part,
        ),
      );
    const again = isRead(each) ? input : await toUse();
    const compare = async (shown: typeof over): Promise<void> => {
      const rest = await send(ours, caller, "/v1", toRequest(each.op, again));
      const { data } = shown.body.result;
      expect(still(each.op.list === undefined ? data : data.items)).toEqual(still(each.op.plain === undefined ? rest.body.data : rest.body));
    };
    if (!isRead(each)) return compare(await trpc(each, caller, again));
    // Commands that expire between the two reads change a count, so those that differ are read once more.
    await compare(over).catch(async () => compare(await trpc(each, caller, again, world.callOverHttp)));
  });
});
