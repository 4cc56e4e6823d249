// Values that no column can hold, and names of built-in object members, in every field of every operation: over REST and tRPC, in headers
// and in paths. The answer is never a 500 and has the right code. The contract supplies the fields.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { HEADERS, sign } from "../../protocol/index.ts";
import { CASES, type Case, callerFor, NEEDS_PROVIDER, openStock, type Stock, sample, toRequest } from "../contract/samples.ts";
import { type Answer, asBearer, type Caller, startWorld, type World } from "../kit/gateway/world.ts";
import { head, rawCall } from "./raw.ts";

const OFF = Object.fromEntries(
  ["STANDARD", "TENANT", "AGENT", "HEARTBEAT", "ANONYMOUS", "PAIRING", "FAILED_AUTH", "CONNECT", "READS", "INVITES"].map((name) => [
    `RATE_LIMIT_${name}`,
    "off",
  ]),
);

let world: World;
let stock: Stock;
/** A user whose token names no tenant, so the gateway reads the tenant from the request. */
let unbound: Caller;
beforeAll(async () => {
  world = await startWorld({ ...OFF, TENANTS_PER_USER: "100000", TRUSTED_PROXIES: "127.0.0.1/32" }, { spread: true });
  stock = await openStock(world);
  unbound = asBearer((await world.app.mint({ userId: "nobody-in-particular", ttlSeconds: 3_600 })).token);
});
afterAll(() => world.close());

const UNSTORABLE = ["\u0000", "a\u0000b", "\ud800", "a\udfffb"];
const LOST = "__proto__";
const WORDS = ["constructor", LOST, "toString", "hasOwnProperty"];
const NUMBERS = [2 ** 31, -(2 ** 31) - 1, 2 ** 53, 1e308];
const MOMENTS = [
  "0000-01-01T00:00:00Z",
  "0000-12-31T23:59:59+00:01",
  "0001-01-01T00:00:00+00:01",
  "9999-12-31T23:59:59-00:01",
  "9999-12-31T23:59:59-23:59",
  "9999-12-31T23:59:59Z",
];

interface Schema {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly maximum?: number;
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}
interface Field {
  readonly path: readonly string[];
  readonly types: ReadonlySet<string>;
  readonly formats: ReadonlySet<string>;
}
/** Stands for any key of an open object and any index of a list. */
const ANY = "*";

const variantsOf = (schema: Schema): readonly Schema[] => [schema, ...[...(schema.anyOf ?? []), ...(schema.allOf ?? [])].flatMap(variantsOf)];
const fieldsOf = (schema: Schema, path: readonly string[] = []): readonly Field[] => {
  const variants = variantsOf(schema);
  const below = variants.flatMap(({ properties = {}, items, additionalProperties }) => [
    ...Object.entries(properties).flatMap(([name, part]) => fieldsOf(part, [...path, name])),
    ...(items === undefined ? [] : fieldsOf(items, [...path, ANY])),
    ...(typeof additionalProperties === "object" ? fieldsOf(additionalProperties, [...path, ANY]) : []),
  ]);
  const types = new Set(variants.flatMap(({ type }) => type ?? []));
  const formats = new Set(variants.flatMap(({ format }) => format ?? []));
  return path.length === 0 ? below : [{ path, types, formats }, ...below];
};
const inputOf = ({ op }: Case): Schema => z.toJSONSchema(op.input, { io: "input", unrepresentable: "any" }) as Schema;

/** The input with this value at that path; missing parents are created. */
const put = (input: unknown, [name, ...rest]: readonly string[], value: unknown, key = "any"): unknown => {
  if (name === undefined) return value;
  if (name === ANY && Array.isArray(input)) return [put(undefined, rest, value, key)];
  const before = typeof input === "object" && input !== null ? input : {};
  const at = name === ANY ? key : name;
  const entries = Object.entries(before).filter(([other]) => other !== at);
  return Object.fromEntries([...entries, [at, put((before as Record<string, unknown>)[at], rest, value, key)]]);
};

const EXPECTED_OF_WORDS = new Set([200, 201, 204, 303, 400, 401, 403, 404, 409, 415, 422]);

/** JSON can carry a lone surrogate; a URL can only spell it as broken bytes. */
const percent = (text: string): string =>
  [...text].map((letter) => (letter.isWellFormed() ? encodeURIComponent(letter) : letter === "\ud800" ? "%ED%A0%80" : "%ED%BF%BF")).join("");

const overRest = (as: Caller, { op }: Case, input: Record<string, unknown>): Promise<Answer> => {
  const marks = new Map<string, string>();
  // toRequest encodes URLs by functions that throw for a lone surrogate.
  const masked = Object.fromEntries(
    Object.entries(input).map(([name, value]) => {
      if (typeof value !== "string" || value.isWellFormed() || (!op.rest[0]?.includes(`{${name}}`) && /^(POST|PUT|PATCH)/.test(op.rest[0] ?? "")))
        return [name, value];
      const mark = `mark${marks.size}mark`;
      marks.set(mark, percent(value));
      return [name, mark];
    }),
  );
  const { method, path, body } = toRequest(op, masked);
  return world.call(as, method, `/v1${path.replaceAll(/mark\d+mark/g, (mark) => marks.get(mark) ?? mark)}`, body === undefined ? {} : { body });
};
const overTrpc = async (as: Caller, { id, op }: Case, input: Record<string, unknown>): Promise<Answer> => {
  const text = JSON.stringify(input);
  const answer =
    op.kind === "mutation"
      ? await world.call(as, "POST", `/trpc/${id}`, { rawBody: text })
      : await world.call(as, "GET", `/trpc/${id}?input=${encodeURIComponent(text)}`);
  return { ...answer, body: { ...answer.body, code: answer.body?.error?.data?.app?.code } };
};
const WAYS = [
  ["REST", overRest],
  ["tRPC", overTrpc],
] as const;

/** Leaves out the removal, which would delete what other calls need, and the stream, which answers differently. */
const cases = CASES.filter(({ id, op }) => op.kind !== "subscription" && id !== "devices.remove" && !NEEDS_PROVIDER.has(id));
const named = cases.map((each) => [each.id, each] as const);
const known = new Map<string, Promise<Record<string, unknown>>>();
const sampled = (each: Case): Promise<Record<string, unknown>> => {
  const made = known.get(each.id) ?? sample(each, stock);
  known.set(each.id, made);
  return made;
};

const drive = async (each: Case, field: Field, value: unknown, judge: (answer: Answer) => void, key?: string): Promise<void> => {
  const input = put(await sampled(each), field.path, value, key) as Record<string, unknown>;
  for (const [way, ask] of WAYS) {
    if (way === "REST" ? each.op.rest.length === 0 : each.op.plain?.pieces === true) continue;
    // toRequest joins the texts of a list in a query and makes them well-formed.
    if (way === "REST" && field.path.includes(ANY) && typeof value === "string" && !value.isWellFormed() && each.op.rest[0]?.startsWith("GET ")) continue;
    // Over REST this field is a header, and HTTP allows no such values there.
    if (way === "REST" && String(field.path[0]) in each.op.headers) continue;
    const answer = await ask(callerFor(each, stock), each, input);
    try {
      judge(answer);
    } catch (error) {
      throw new Error(`${way} ${each.id} ${field.path.join(".")} = ${JSON.stringify(value)}: ${answer.status} ${JSON.stringify(answer.body)}`, {
        cause: error,
      });
    }
  }
};
/** For an agent the refusal of another device comes first. */
const isRefused = ({ status, body }: Answer): void => {
  if (body?.error?.details?.reason !== "not_own_device" && body?.error?.data?.app?.details?.reason !== "not_own_device")
    expect([status, body?.code]).toEqual([400, "VALIDATION_FAILED"]);
};
const isServed = ({ status }: Answer): void => expect(EXPECTED_OF_WORDS).toContain(status);

describe("fields", () => {
  test.each(named)("%s refuses text that no column can hold, in every field", async (_, each) => {
    for (const field of fieldsOf(inputOf(each)).filter(({ types }) => types.size === 0 || types.has("string") || types.has("object")))
      for (const value of UNSTORABLE) {
        // OTLP wants a broken text to cost itself alone.
        const judge = each.id === "traces.ingest" ? isServed : isRefused;
        if (types(field, "string")) await drive(each, field, value, judge);
        if (types(field, "object")) await drive(each, field, { [value]: 1 }, judge);
      }
  });

  test.each(named)("%s treats names of built-in object members as plain text, in every field", async (_, each) => {
    for (const field of fieldsOf(inputOf(each)))
      for (const word of WORDS) {
        await drive(each, field, word, isServed);
        if (types(field, "object") && word !== LOST) await drive(each, field, JSON.parse(`{"${word}":1}`), isServed);
      }
  });

  test.each(named)("%s refuses a field named __proto__, which would get lost, in every object", async (_, each) => {
    for (const field of fieldsOf(inputOf(each)).filter(({ types: all }) => all.has("object"))) await drive(each, field, JSON.parse(`{"${LOST}":1}`), isRefused);
  });

  test.each(named)("%s refuses numbers beyond their column, in every field", async (_, each) => {
    for (const field of fieldsOf(inputOf(each)))
      for (const value of NUMBERS) {
        const isNumber = field.types.has("integer") || field.types.has("number");
        await drive(each, field, value, isNumber && !field.types.has("string") ? isRefused : isServed);
      }
  });

  test.each(named)("%s answers times outside of four-digit years without a 500, in every field", async (_, each) => {
    for (const field of fieldsOf(inputOf(each)).filter(({ types: all }) => all.has("string")))
      for (const moment of ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59"]) await drive(each, field, moment, isServed);
  });
});

const types = ({ types: all }: Field, type: string): boolean => all.size === 0 || all.has(type);

test("every time in an input is refused if no column can hold it", async () => {
  // A heartbeat's time is not stored, and the scanner of heartbeats knows the plain schema.
  const moments = cases
    .filter(({ id }) => id !== "devices.heartbeat")
    .flatMap((each) => fieldsOf(inputOf(each)).flatMap((field) => (field.formats.has("date-time") ? [[each, field] as const] : [])));
  expect(moments.length).toBeGreaterThanOrEqual(3);
  for (const [each, field] of moments) for (const moment of MOMENTS.slice(0, 5)) await drive(each, field, moment, isRefused);
});

test("every integer in an input is bounded to what a column can hold", () => {
  const unbounded = CASES.flatMap((each) => {
    const walk = (schema: Schema, path: string): readonly string[] =>
      variantsOf(schema).flatMap((one) => [
        ...(one.type === "integer" && !((one.maximum ?? Infinity) <= 2 ** 31 - 1 && (one.minimum ?? -Infinity) >= -(2 ** 31)) ? [path] : []),
        ...Object.entries(one.properties ?? {}).flatMap(([name, part]) => walk(part, `${path}.${name}`)),
        ...(one.items === undefined ? [] : walk(one.items, `${path}[]`)),
      ]);
    return walk(inputOf(each), each.id);
  });
  expect([...new Set(unbounded)]).toEqual([]);
});

describe("before the first query", () => {
  const tenantCases = cases.filter(({ op }) => op.auth.includes("user") && op.tenancy === "tenant" && op.permission !== "platform");
  test.each(tenantCases.flatMap((each) => UNSTORABLE.map((value) => [each.id, JSON.stringify(value), each, value] as const)))(
    "%s for a tenant with the id %s is refused",
    async (_id, _text, each, value) => {
      const fields = Object.keys(inputOf(each).properties ?? {}).filter((name) => /^tenant_?id$/i.test(name));
      const input = await sampled(each);
      for (const name of fields.length > 0 ? fields : ["tenantId"])
        for (const [way, ask] of WAYS) {
          if (way === "REST" ? each.op.rest.length === 0 : each.op.plain?.pieces === true) continue;
          const { status, body } = await ask(unbound, each, { ...input, [name]: value });
          // A URL whose bytes are not valid text names no tenant.
          if (way === "REST" && !value.isWellFormed() && status === 401) expect(body.details.reason).toBe("missing_tenant");
          else expect([way, status, body.code]).toEqual([way, 400, "VALIDATION_FAILED"]);
        }
    },
  );

  // The library never passes on a NUL in a header.
  test.each(["x-svc-tenant-id", "x-api-key", "x-svc-agent-id"])("a strange value in %s answers 401 or 403", async (name) => {
    const timestamp = new Date().toISOString();
    const { deviceId, identity } = stock.device;
    const good: Record<string, string> = {
      [HEADERS.agentId]: identity.agentId,
      [HEADERS.tenantId]: identity.tenantId,
      [HEADERS.timestamp]: timestamp,
      [HEADERS.signature]: sign(identity.secret, "", timestamp),
    };
    const key = { "x-api-key": "svk_0123456789", "x-svc-tenant-id": stock.tenant.tenantId };
    const bearer = { authorization: unbound.headers("")["authorization"] ?? "" };
    const callers: Record<string, string>[] = name === "x-api-key" ? [key] : name === "x-svc-agent-id" ? [good] : [good, key, bearer];
    for (const caller of callers)
      for (const [value, wanted] of [
        // Bytes that are not valid text, as the library decodes them.
        ["\u00c3\u00a9", [401, 403]],
        ["\u00c3\u0028", [401, 403]],
        ["\u00ed\u00a0\u0080", [401, 403]],
        ["x".repeat(300), [401]],
        ...WORDS.map((word) => [word, [401, 403]] as const),
      ] as const) {
        const bytes = Buffer.from(head(`GET /v1/devices/${deviceId}/secrets`, { ...caller, [name]: value }), "latin1");
        const { answer } = await rawCall(world.url, [bytes]);
        expect([name, value, answer?.status, wanted.includes(answer?.status as never)]).toEqual([name, value, answer?.status, true]);
      }
  });
});
