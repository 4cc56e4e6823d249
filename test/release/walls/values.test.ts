// Values that no column can hold, and names of built-in object members, in every field of every operation: over REST and tRPC, in headers
// and in paths. The answer is never a 500 and has the right code. The contract supplies the fields.
//
// Every call over either transport hands its input to parseInput, so that function judges each value in each field. That both transports do so is shown
// by a call of each operation with one field, and by calls with one field of each kind that the contract has: of each place in the request and each
// type, for the transports treat such fields alike. Only what parseInput accepts is then run: of the values that a handler treats alike one, in as many
// fields at once as the operation allows, over one transport, for the handler gets the same from both.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { HEADERS, sign } from "../../../protocol/index.ts";
import { isAppError } from "../../../server/core/errors.ts";
import { parseInput } from "../../../server/gateway/rest/parse.ts";
import { CASES, type Case, callerFor, NEEDS_PROVIDER, openStock, type Stock, sample, toRequest } from "../../contract/samples.ts";
import { head, rawCall } from "../../gateway/raw.ts";
import { type Answer, asBearer, type Caller, startWorld, type World } from "../../kit/gateway/world.ts";

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
  world = await startWorld({ ...OFF, TENANTS_PER_USER: "100000", TRUSTED_PROXIES: "127.0.0.1/32" }, { spread: true, inProcess: true });
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
const schemas = new Map<string, Schema>();
/** Written once for each operation: seven tests ask for it. */
const inputOf = ({ id, op }: Case): Schema => {
  const known = schemas.get(id) ?? (z.toJSONSchema(op.input, { io: "input", unrepresentable: "any" }) as Schema);
  schemas.set(id, known);
  return known;
};

/** The input with this value at that path; missing parents are created. */
const put = (input: unknown, [name, ...rest]: readonly string[], value: unknown): unknown => {
  if (name === undefined) return value;
  if (name === ANY && Array.isArray(input)) return [put(undefined, rest, value)];
  const before = typeof input === "object" && input !== null ? input : {};
  const at = name === ANY ? "any" : name;
  const entries = Object.entries(before).filter(([other]) => other !== at);
  return Object.fromEntries([...entries, [at, put((before as Record<string, unknown>)[at], rest, value)]]);
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

/** The code of the refusal that every transport gives to this input; null when the operation is run. */
const refusalOf = ({ op }: Case, input: unknown): string | null => {
  try {
    parseInput(op, JSON.parse(JSON.stringify(input)));
    return null;
  } catch (error) {
    if (isAppError(error)) return error.code;
    throw error;
  }
};
const withValue = async (each: Case, field: Field, value: unknown): Promise<Record<string, unknown>> =>
  put(await sampled(each), field.path, value) as Record<string, unknown>;

const canCarry = (way: "REST" | "tRPC", { op }: Case, { path }: Field, value: unknown): boolean => {
  if (way === "tRPC") return op.plain?.pieces !== true;
  if (op.rest.length === 0) return false;
  // toRequest joins the texts of a list in a query and makes them well-formed.
  if (path.includes(ANY) && typeof value === "string" && !value.isWellFormed() && op.rest[0]?.startsWith("GET ")) return false;
  // Over REST this field is a header, and HTTP allows no such values there.
  return !(String(path[0]) in op.headers);
};

interface Tried {
  readonly field: Field;
  readonly value: unknown;
}
type Judge = (answer: Answer) => void;
const nameOf = ({ field, value }: Tried): string => `${field.path.join(".")} = ${JSON.stringify(value)}`;
/** Calls an operation with these values over one transport; undefined if it cannot carry them. */
const ask = async ([way, call]: (typeof WAYS)[number], each: Case, some: readonly Tried[], judge: Judge): Promise<Answer | undefined> => {
  if (!some.every(({ field, value }) => canCarry(way, each, field, value))) return undefined;
  const input = some.reduce((made, { field, value }) => put(made, field.path, value), (await sampled(each)) as unknown);
  const answer = await call(callerFor(each, stock), each, input as Record<string, unknown>);
  try {
    judge(answer);
  } catch (error) {
    throw new Error(`${way} ${each.id} ${some.map(nameOf).join(", ")}: ${answer.status} ${JSON.stringify(answer.body)}`, { cause: error });
  }
  return answer;
};
const drive = async (each: Case, field: Field, value: unknown, judge: Judge): Promise<void> => {
  for (const way of WAYS) await ask(way, each, [{ field, value }], judge);
};

/** Where a REST request carries the field. */
const placeOf = ({ op }: Case, [name = "", ...below]: readonly string[]): string => {
  const [method = "", template = ""] = (op.rest[0] ?? "").split(" ");
  if (template.includes(`{${name}}`)) return "path";
  return `${/^(?:POST|PUT|PATCH)$/.test(method) ? "body" : "query"}${below.length > 0 ? ", nested" : ""}`;
};
/** The operation with the first field of each kind: the transports treat fields of one place and type alike. */
const FIRST_OF_KIND = new Map<string, string>();
const kindOf = (each: Case, field: Field): string => [placeOf(each, field.path), ...[...field.types].sort(), ...[...field.formats].sort()].join();
for (const each of cases)
  for (const field of fieldsOf(inputOf(each))) {
    const kind = kindOf(each, field);
    if (!FIRST_OF_KIND.has(kind)) FIRST_OF_KIND.set(kind, `${each.id} ${field.path.join(".")}`);
  }
const standsForItsKind = (each: Case, field: Field): boolean => FIRST_OF_KIND.get(kindOf(each, field)) === `${each.id} ${field.path.join(".")}`;
/** For an agent the refusal of another device comes first. */
const isRefused = ({ status, body }: Answer): void => {
  if (body?.error?.details?.reason !== "not_own_device" && body?.error?.data?.app?.details?.reason !== "not_own_device")
    expect([status, body?.code]).toEqual([400, "VALIDATION_FAILED"]);
};
const isServed = ({ status }: Answer): void => expect(EXPECTED_OF_WORDS).toContain(status);

const types = ({ types: all }: Field, type: string): boolean => all.size === 0 || all.has(type);

const tried = (fields: readonly Field[], valuesOf: (field: Field) => readonly unknown[]): readonly Tried[] =>
  fields.flatMap((field) => valuesOf(field).map((value) => ({ field, value })));

const unstorableFor = (field: Field): readonly unknown[] =>
  UNSTORABLE.flatMap((value) => [...(types(field, "string") ? [value] : []), ...(types(field, "object") ? [{ [value]: 1 }] : [])]);
const lostFor = ({ types: all }: Field): readonly unknown[] => (all.has("object") ? [JSON.parse(`{"${LOST}":1}`)] : []);
const wordsFor = (field: Field): readonly unknown[] =>
  WORDS.flatMap((word) => [word, ...(types(field, "object") && word !== LOST ? [JSON.parse(`{"${word}":1}`)] : [])]);
const isNumber = ({ types: all }: Field): boolean => (all.has("integer") || all.has("number")) && !all.has("string");
/** Bytes and numbers of files stand in columns of 64 bits or in JSON, whose numbers go further. */
const isWide = (name: string): boolean => /Bytes$|^bytes(?:Done|Total)$|^(?:size|files)$/.test(name);
const beyondColumn = (field: Field): readonly number[] => {
  if (!isNumber(field)) return [];
  return isWide(String(field.path.at(-1))) ? NUMBERS.filter((number) => number !== 2 ** 31) : NUMBERS;
};
const timesFor = ({ types: all }: Field): readonly unknown[] => (all.has("string") ? ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59"] : []);

/** Every value is refused by what every call goes through, by a call of the operation, and by calls for each kind of field. */
const refuses = async (each: Case, valuesOf: (field: Field) => readonly unknown[]): Promise<void> => {
  const fields = fieldsOf(inputOf(each));
  const accepted: unknown[] = [];
  for (const { field, value } of tried(fields, valuesOf)) {
    const code = refusalOf(each, await withValue(each, field, value));
    if (code !== "VALIDATION_FAILED") accepted.push([field.path.join("."), value, code]);
  }
  expect(accepted).toEqual([]);
  const [first] = tried(fields, valuesOf);
  if (first !== undefined) await drive(each, first.field, first.value, isRefused);
  for (const { field, value } of tried(
    fields.filter((field) => standsForItsKind(each, field)),
    valuesOf,
  ))
    await drive(each, field, value, isRefused);
};
const isNested = (path: readonly string[], other: readonly string[]): boolean => path.every((name, at) => name === other[at]);
/** The first value of every field, then the second ones, and so on; a field and one within it never together. */
const roundsOf = (all: readonly Tried[]): readonly (readonly Tried[])[] => {
  const rounds: Tried[][] = [];
  for (const one of all) {
    const fits = (round: readonly Tried[]): boolean => !round.some(({ field: { path } }) => isNested(path, one.field.path) || isNested(one.field.path, path));
    const round = rounds.find(fits);
    if (round === undefined) rounds.push([one]);
    else round.push(one);
  }
  return rounds;
};
/** Every value that an operation accepts is tried on it, and the others for each kind of field. `alike` are values that only parseInput tells apart. */
const serves = async (each: Case, valuesOf: (field: Field) => readonly unknown[], alike: readonly unknown[] = []): Promise<void> => {
  const accepted: Tried[] = [];
  for (const { field, value } of tried(fieldsOf(inputOf(each)), valuesOf)) {
    const code = refusalOf(each, await withValue(each, field, value));
    expect([field.path.join("."), value, code === null || code === "VALIDATION_FAILED"]).toEqual([field.path.join("."), value, true]);
    if (standsForItsKind(each, field)) await drive(each, field, value, isServed);
    else if (code === null && !alike.includes(value)) accepted.push({ field, value });
  }
  const [rest, trpc] = WAYS;
  const once = async (some: readonly Tried[]): Promise<Answer | undefined> =>
    (await ask(rest, each, some, isServed)) ?? (await ask(trpc, each, some, isServed));
  for (const round of roundsOf(accepted)) {
    const answer = round.length > 1 ? await once(round) : undefined;
    // A refusal may be due to one of them and hide what the others would cause.
    if (answer === undefined || answer.status >= 300) for (const one of round) await once([one]);
  }
};

describe("fields", () => {
  test.each(named)("%s refuses text that no column can hold, in every field", async (_, each) => {
    if (each.id !== "traces.ingest") return refuses(each, unstorableFor);
    // OTLP wants a broken text to cost itself alone.
    for (const { field, value } of tried(fieldsOf(inputOf(each)), unstorableFor)) await drive(each, field, value, isServed);
  });

  test.each(named)("%s treats names of built-in object members as plain text, in every field", (_, each) =>
    // A look-up finds an inherited function by all of them but __proto__.
    serves(each, wordsFor, ["toString", "hasOwnProperty"]),
  );

  test.each(named)("%s refuses a field named __proto__, which would get lost, in every object", async (_, each) => {
    if (each.id !== "traces.ingest") return refuses(each, lostFor);
    for (const { field, value } of tried(fieldsOf(inputOf(each)), lostFor)) await drive(each, field, value, isRefused);
  });

  test.each(named)("%s refuses numbers beyond their column, in every field", async (_, each) => {
    await refuses(each, beyondColumn);
    await serves(each, (field) => NUMBERS.filter((number) => !beyondColumn(field).includes(number)));
  });

  test.each(named)("%s answers times outside of four-digit years without a 500, in every field", (_, each) => serves(each, timesFor));
});

test("every time in an input is refused if no column can hold it", async () => {
  // A heartbeat's time is not stored, and the scanner of heartbeats knows the plain schema.
  const moments = cases
    .filter(({ id }) => id !== "devices.heartbeat")
    .flatMap((each) => fieldsOf(inputOf(each)).flatMap((field) => (field.formats.has("date-time") ? [[each, field] as const] : [])));
  expect(moments.length).toBeGreaterThanOrEqual(3);
  for (const [each, field] of moments) for (const moment of MOMENTS.slice(0, 5)) await drive(each, field, moment, isRefused);
});

test("every integer in an input is bounded to what a column can hold", () => {
  const highestOf = (path: string): number => (isWide(path.split(".").at(-1) ?? "") ? Number.MAX_SAFE_INTEGER : 2 ** 31 - 1);
  const unbounded = CASES.flatMap((each) => {
    const walk = (schema: Schema, path: string): readonly string[] =>
      variantsOf(schema).flatMap((one) => [
        ...(one.type === "integer" && !((one.maximum ?? Infinity) <= highestOf(path) && (one.minimum ?? -Infinity) >= -(2 ** 31)) ? [path] : []),
        ...Object.entries(one.properties ?? {}).flatMap(([name, part]) => walk(part, `${path}.${name}`)),
        ...(one.items === undefined ? [] : walk(one.items, `${path}[]`)),
      ]);
    return walk(inputOf(each), each.id);
  });
  expect([...new Set(unbounded)]).toEqual([]);
});

describe("before the first query", () => {
  const tenantCases = cases.filter(({ op }) => op.auth.includes("user") && op.tenancy === "tenant" && op.permission !== "platform");
  const fieldsOfTenant = (each: Case): readonly string[] => {
    const fields = Object.keys(inputOf(each).properties ?? {}).filter((name) => /^tenant_?id$/i.test(name));
    return fields.length > 0 ? fields : ["tenantId"];
  };
  const placesOf = (each: Case): string =>
    fieldsOfTenant(each)
      .map((name) => `${name} ${placeOf(each, [name])}`)
      .join();
  /** Each operation with one of the values, and with all of them the first of each place where a request names the tenant. */
  const asked = tenantCases.flatMap((each, at) => {
    const isFirst = tenantCases.findIndex((other) => placesOf(other) === placesOf(each)) === at;
    return UNSTORABLE.filter((_value, nth) => isFirst || nth === at % UNSTORABLE.length).map((value) => [each.id, JSON.stringify(value), each, value] as const);
  });
  test.each(asked)("%s for a tenant with the id %s is refused", async (_id, _text, each, value) => {
    const input = await sampled(each);
    for (const name of fieldsOfTenant(each))
      for (const [way, call] of WAYS) {
        // A raw body has no field that could name a tenant.
        if (way === "REST" ? each.op.rest.length === 0 || each.op.rawBody !== undefined : each.op.plain?.pieces === true) continue;
        const { status, body } = await call(unbound, each, { ...input, [name]: value });
        // A URL whose bytes are not valid text names no tenant.
        if (way === "REST" && !value.isWellFormed() && status === 401) expect(body.details.reason).toBe("missing_tenant");
        else expect([way, status, body.code]).toEqual([way, 400, "VALIDATION_FAILED"]);
      }
  });

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
