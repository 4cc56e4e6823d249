// Every record with a version answers with an ETag, and every change of such a record honors If-Match. Both lists come from the contract.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { versionsOf } from "../../../server/gateway/rest/versions.ts";
import { versionedModel } from "../../../server/platform/database/tenant-client.ts";
import { type Case, callerFor, NEEDS_PROVIDER, openStock, overHttp, REST_CASES, type Stock, sample, send, toRequest } from "../../contract/samples.ts";
import { eventsDispatched } from "../../kit/gateway/dispatched.ts";
import { type Answer, startWorld, type World } from "../../kit/gateway/world.ts";

let world: World;
let stock: Stock;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_PAIRING: "off", RATE_LIMIT_AGENT: "off", TENANTS_PER_USER: "100" }, { inProcess: true });
  stock = await openStock(world);
});
afterAll(() => world.close());

const versions = versionsOf(REST_CASES);
const named = (cases: readonly Case[]) => cases.map((each) => [each.id, each] as const);
const reads = REST_CASES.filter(({ op }) => op.kind === "query" && versions.isVersioned(op));
const changes = REST_CASES.filter(({ id, op }) => versions.changedBy(op) !== null && !NEEDS_PROVIDER.has(id));
const pathOf = ({ op }: Case): string => op.rest[0]?.split(" ")[1] ?? "";

type Input = Record<string, unknown>;
const go = (each: Case, input: Input, headers: Record<string, string> = {}, over: Pick<Stock, "world"> = stock): Promise<Answer> => {
  const request = toRequest(each.op, input);
  return send(over, callerFor(each, stock), "/v1", { ...request, headers: { ...request.headers, ...headers } });
};
/** Reads the record that the change is about. */
const readFor = (change: Case): Case => {
  const path = pathOf(change);
  const [read] = reads.filter((each) => path === pathOf(each) || path.startsWith(`${pathOf(each)}/`)).sort((a, b) => pathOf(b).length - pathOf(a).length);
  if (read === undefined) throw new Error(`nobody reads the record of ${change.id}`);
  return read;
};
const tagFor = async (change: Case, input: Input): Promise<string> => {
  const read = readFor(change);
  const { status, headers } = await go(read, Object.fromEntries(Object.entries(input).filter(([name]) => pathOf(read).includes(`{${name}}`))));
  expect(status).toBe(200);
  return headers.get("etag") ?? "";
};

describe("ETag", () => {
  test("the contract has such records and changes of them", () => {
    expect(reads.length).toBeGreaterThan(4);
    expect(changes.length).toBeGreaterThan(10);
  });

  test.each(named(reads))("%s answers with a tag that begins with its version, and 304 to whoever has that answer", async (_, each) => {
    const input = await sample(each, stock);
    await eventsDispatched(world, stock.tenant.tenantId);
    const first = await go(each, input);
    const tag = first.headers.get("etag") ?? "";
    expect([first.status, tag]).toEqual([200, expect.stringMatching(new RegExp(`^"${first.body.data.version}-[\\w-]{11}"$`))]);
    for (const known of [tag, `W/${tag}`, `"0", W/${tag}`, "*"]) {
      // One over HTTP, where an answer without a body gets its length.
      const again = await go(each, input, { "if-none-match": known }, known === tag ? overHttp(stock) : stock);
      expect([known, again.status, again.body, again.headers.get("etag"), again.headers.get("content-length")]).toEqual([known, 304, null, tag, null]);
    }
    for (const other of ['"0"', `"${first.body.data.version}"`, "nonsense", ""]) expect((await go(each, input, { "if-none-match": other })).status).toBe(200);
  });
});

describe("If-Match", () => {
  test.each(named(changes))("%s refuses another version and accepts the one that was read", async (_, each) => {
    if (!("version" in each.op.input)) expect(versionedModel(versions.changedBy(each.op) ?? "")).toBeDefined();
    const input = await sample(each, stock);
    const tag = await tagFor(each, input);
    const version = Number(/\d+/.exec(tag)?.[0]);
    for (const stale of [`"${version + 1000}"`, `W/"${version + 1000}-abc"`]) {
      const refused = await go(each, input, { "if-match": stale });
      expect([refused.status, refused.body?.code, refused.body?.details]).toEqual([409, "VERSION_CONFLICT", { currentVersion: version }]);
    }
    expect(await tagFor(each, input)).toBe(tag);
    for (const wrong of ["abc", '"1.5"', '"1" "2"', '"-1"', '"99999999999"', ""]) {
      const refused = await go(each, input, { "if-match": wrong });
      expect([wrong, refused.status, refused.body?.code]).toEqual([wrong, 400, "VALIDATION_FAILED"]);
    }
    expect((await go(each, input, { "if-match": tag })).status).toBe(each.op.status);
  });

  test.each(named(changes))("%s takes * for any version", async (_, each) => {
    expect((await go(each, await sample(each, stock), { "if-match": "*" })).status).toBe(each.op.status);
  });

  test("a list of tags accepts each of its versions, weak ones too", async () => {
    const rotate = changes.find(({ id }) => id === "apiKeys.rotate") as Case;
    const input = await sample(rotate, stock);
    expect((await go(rotate, input, { "if-match": 'W/"7", "8"' })).status).toBe(409);
    expect((await go(rotate, input, { "if-match": '"7", W/"1"' })).status).toBe(200);
  });

  test("of many changes at once that all name one version, exactly one happens", async () => {
    for (const id of ["apiKeys.rotate", "apiKeys.update"]) {
      const each = changes.find((change) => change.id === id) as Case;
      const input = await sample(each, stock);
      const answers = await Promise.all(Array.from({ length: 12 }, () => go(each, input, { "if-match": '"1"' })));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(11).fill(409)]);
    }
  });

  test("a repeat under its idempotency key gets the first answer, although the version has moved on", async () => {
    const each = changes.find(({ id }) => id === "apiKeys.rotate") as Case;
    const input = await sample(each, stock);
    const headers = { "if-match": '"1"', "idempotency-key": "rotate-once" };
    const first = await go(each, input, headers);
    const again = await go(each, input, headers);
    expect([again.status, again.body.data, again.headers.get("idempotent-replayed")]).toEqual([200, first.body.data, "true"]);
  });

  test("a refused version leaves no audit record, and an accepted one records only the change itself", async () => {
    const each = changes.find(({ id }) => id === "apiKeys.revoke") as Case;
    const input = await sample(each, stock);
    await go(each, input, { "if-match": '"9"' });
    await go(each, input, { "if-match": '"1"' });
    const { data } = (await world.call(stock.owner, "GET", `/v1/audit-logs?resource=${String(input["keyId"])}&action=apiKeys.revoke`)).body;
    expect(data).toHaveLength(1);
    expect(data[0].changes.map(({ type, after }: { type: string; after: { version: number } }) => [type, after.version])).toEqual([["api-keys", 2]]);
  });
});
