// Batches: each item is judged like a call of its own, in order, and one that may not be in a batch stops all before anything runs.
import { afterAll, beforeAll, expect, test } from "vitest";
import { contract, isBatchable, type Operation } from "../../../protocol/index.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

interface Answered {
  readonly id: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: the envelope of any operation
  readonly body: any;
}

let world: World;
let tenant: TestTenant;
let owner: Caller;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off" }, { inProcess: true });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
});
afterAll(() => world.close());

const send = (as: Caller, requests: readonly object[], more: object = {}, headers: Record<string, string> = {}) =>
  world.call(as, "POST", "/v1/batch", { body: { requests, ...more }, headers });
const run = async (as: Caller, requests: readonly object[], more: object = {}): Promise<readonly Answered[]> => {
  const answer = await send(as, requests, more);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body.data.responses;
};
const fleet = (id: string, name: string, more: object = {}) => ({ id, method: "POST", path: "/fleets", body: { name, deviceIds: [] }, ...more });
const list = { id: "list", method: "GET", path: "/fleets" };
const namesOf = ({ body }: Answered): readonly string[] => body.data.map(({ name }: { name: string }) => name);
const statusesOf = (answers: readonly Answered[]): readonly number[] => answers.map(({ status }) => status);

test("items run in order, each with the answer and the request id of a call of its own", async () => {
  const as = await (await world.tenant()).user("owner");
  const answer = await send(
    as,
    [list, fleet("make", "Lisbon"), { ...list, id: "again", path: "/fleets?sort=name&limit=5" }],
    {},
    { "x-request-id": "trace-me-12345678" },
  );
  const [before, made, after] = answer.body.data.responses;
  expect([namesOf(before), made.body.data.name, namesOf(after)]).toEqual([[], "Lisbon", ["Lisbon"]]);
  expect(made).toMatchObject({ id: "make", status: 201, headers: { location: `/v1/fleets/${made.body.data.fleetId}`, "x-request-id": "trace-me-12345678-2" } });
  expect(made.body.meta.requestId).toBe("trace-me-12345678-2");
  const records = await world.sql.query("select request_id from audit_logs where tenant_id = $1 and resource_id = $2", [
    made.body.data.tenantId,
    made.body.data.fleetId,
  ]);
  expect(records.rows).toEqual([{ request_id: "trace-me-12345678-2" }]);
});

test("an item that fails changes nothing for the others, unless they depend on it or the batch stops on errors", async () => {
  const as = await (await world.tenant()).user("owner");
  const bad = { id: "bad", method: "GET", path: "/fleets/flt_unknown" };
  const dependent = [
    bad,
    fleet("free", "Free"),
    fleet("bound", "Bound", { dependsOn: ["bad"] }),
    fleet("bound2", "Bound", { dependsOn: ["free", "bound"] }),
    list,
  ];
  const answers = await run(as, dependent);
  expect(statusesOf(answers)).toEqual([404, 201, 409, 409, 200]);
  expect(answers[3]?.body).toMatchObject({ success: false, error: { code: "BATCH_DEPENDENCY_FAILED", details: { item: "bound" } } });
  expect(namesOf(answers[4] as Answered)).toEqual(["Free"]);
  const stopped = await run(as, [fleet("first", "First"), bad, fleet("never", "Never"), list], { stopOnError: true });
  expect(statusesOf(stopped)).toEqual([201, 404, 409, 409]);
  expect(namesOf((await run(as, [list]))[0] as Answered)).toEqual(["First", "Free"]);
});

test("each item needs the permission of its own operation, and sees what its caller sees", async () => {
  const viewer = await tenant.user("viewer");
  expect(statusesOf(await run(viewer, [list, fleet("make", "Refused"), { id: "key", method: "POST", path: "/api-keys", body: { name: "k" } }]))).toEqual([
    200, 403, 403,
  ]);
  const stranger = await world.tenant();
  const device = await stranger.device();
  const [seen] = await run(tenant.apiKey, [{ id: "theirs", method: "GET", path: `/devices/${device.deviceId}` }]);
  expect([seen?.status, seen?.body.error.code]).toEqual([404, "DEVICE_NOT_FOUND"]);
});

test("a batch without a credential, or of an agent, is refused", async () => {
  const device = await tenant.device();
  expect((await world.call({ kind: "agent", headers: () => ({}) } as unknown as Caller, "POST", "/v1/batch", { body: { requests: [list] } })).status).toBe(401);
  expect((await send(device.as, [list])).status).toBe(403);
});

test("the key of an item makes it happen once, whatever batch it comes in, and a batch has none", async () => {
  const keyed = fleet("make", "Once", { headers: { "idempotency-key": "make-once" } });
  const [first] = await run(owner, [keyed]);
  const [second] = await run(owner, [keyed]);
  expect([first?.status, first?.headers["idempotent-replayed"], second?.status, second?.headers["idempotent-replayed"]]).toEqual([201, undefined, 201, "true"]);
  expect(second?.body.data).toEqual(first?.body.data);
  expect((await send(owner, [list], {}, { "idempotency-key": "of-the-batch" })).body.code).toBe("VALIDATION_FAILED");
});

test("If-Match holds for an item as for a call", async () => {
  const { fleetId } = (await run(owner, [fleet("make", "Held")]))[0]?.body.data ?? {};
  const change = { id: "change", method: "PATCH", path: `/fleets/${fleetId}`, body: { name: "Changed" } };
  expect(statusesOf(await run(owner, [{ ...change, headers: { "if-match": '"7"' } }]))).toEqual([409]);
  expect(statusesOf(await run(owner, [{ ...change, headers: { "if-match": '"1"' } }]))).toEqual([200]);
});

test("an operation that may not be in a batch stops all of it before anything runs", async () => {
  const operations = Object.values(contract).flatMap((group) => Object.values(group.operations as Readonly<Record<string, Operation>>));
  const outside = operations.filter((op) => op.rest.length > 0 && !isBatchable(op)).flatMap(({ rest }) => rest);
  expect(outside).toEqual(expect.arrayContaining(["POST /batch", "GET /health"]));
  expect(outside.length).toBeGreaterThan(60);
  // The same place may serve others, who may: then the credential decides.
  const insideToo: ReadonlySet<string> = new Set(operations.filter(isBatchable).flatMap(({ rest }) => rest));
  const wrong: string[] = [];
  for (const each of outside.filter((rest) => !insideToo.has(rest))) {
    const [method, path = ""] = each.split(" ");
    const answer = await send(owner, [fleet("first", "Never made"), { id: "outside", method, path: path.replaceAll(/\{\w+\}/g, "x") }]);
    if (answer.status !== 400 || answer.body.code !== "BATCH_PATH_NOT_ALLOWED") wrong.push(`${each}: ${answer.status} ${answer.body.code}`);
  }
  expect(wrong).toEqual([]);
  const made = await world.sql.query("select 1 from fleets where tenant_id = $1 and name = 'Never made'", [tenant.tenantId]);
  expect(made.rows).toEqual([]);
});

const REFUSED: readonly (readonly [name: string, requests: readonly object[]])[] = [
  ["no items", []],
  ["21 items", Array.from({ length: 21 }, (_, n) => ({ ...list, id: `${n}` }))],
  ["an id twice", [list, list]],
  [
    "a later item to depend on",
    [
      { ...list, dependsOn: ["later"] },
      { ...list, id: "later" },
    ],
  ],
  ["an item that depends on itself", [{ ...list, dependsOn: ["list"] }]],
  ["a body of a GET", [{ ...list, body: {} }]],
  ["another method", [{ ...list, method: "TRACE" }]],
  ["a tenant of its own", [{ ...list, headers: { "x-svc-tenant-id": "ten_other" } }]],
  ["a credential of its own", [{ ...list, headers: { authorization: "Bearer x" } }]],
  ...[
    "https://evil.example/v1/fleets",
    "/v1/fleets",
    "/api/v1/fleets",
    "//evil.example/fleets",
    "fleets",
    "/fleets/../api-keys",
    "/fleets/.",
    "/devices%2Fx",
    "/devices%5cx",
    "/fleets#x",
    "/fle ets",
    "/fle\u0000ets",
    "\\fleets",
  ].map((path) => [path, [{ ...list, path }]] as const),
];

test.each(REFUSED)("%s is refused as a whole", async (_, requests) => {
  const answer = await send(owner, requests);
  expect([answer.status, answer.body.code]).toEqual([400, "VALIDATION_FAILED"]);
});

test("what only looks like a path finds nothing", async () => {
  const paths = ["/v12/fleets", "/nothing", "/__proto__", "/fleets/flt_x/x/x/x/x/x/x/x/x/x/x/x", `/fleets/${"x".repeat(3_000)}`];
  expect(
    statusesOf(
      await run(
        owner,
        paths.map((path, n) => ({ id: `${n}`, method: "GET", path })),
      ),
    ),
  ).toEqual([404, 404, 404, 404, 400]);
  expect(statusesOf(await run(owner, [{ id: "a", method: "DELETE", path: "/fleets" }]))).toEqual([405]);
  const hostile = await send(owner, [list, { id: "b", method: "POST", path: "/fleets", body: { name: "\u0000" } }]);
  expect([hostile.status, hostile.body.details.reason]).toEqual([400, "unstorable"]);
});

test("items are answered in the caller's form of errors", async () => {
  const bad = { id: "bad", method: "GET", path: "/fleets/flt_unknown" };
  const answer = await world.call(owner, "POST", "/api/v1/batch", { body: { requests: [bad, fleet("bound", "x", { dependsOn: ["bad"] })] } });
  expect(answer.body.data.responses.map(({ body }: Answered) => typeof body.error)).toEqual(["string", "string"]);
});
