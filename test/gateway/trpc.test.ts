// The stock tRPC client against a running gateway: queries, mutations, batches, typed errors, and the live feed over server-sent events.
import { createTRPCClient, httpBatchLink, httpLink, httpSubscriptionLink, type TRPCClient, TRPCClientError } from "@trpc/client";
import { EventSource } from "eventsource";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import type { AppRouter, Command, Device, LiveEvent } from "../../protocol/index.ts";
import { withTimeout } from "../../server/platform/timeout.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { openBreakableWire } from "../kit/stores/breakable-wire.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
let authorization: string;
beforeAll(async () => {
  world = await startWorld();
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  authorization = `Bearer ${await tenant.token()}`;
});
afterAll(() => world.close());

/** Records the status and headers of each answer that the client receives. */
const spy = () => {
  const statuses: number[] = [];
  const headers: Headers[] = [];
  const spied = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const response = await fetch(input, init);
    statuses.push(response.status);
    headers.push(response.headers);
    return response;
  };
  return { statuses, headers, fetch: spied };
};
const batching = (options: { fetch?: ReturnType<typeof spy>["fetch"]; maxItems?: number } = {}) =>
  createTRPCClient<AppRouter>({
    links: [
      httpBatchLink({ url: `${world.url}/trpc`, headers: { authorization }, fetch: (options.fetch ?? fetch) as never, maxItems: options.maxItems ?? 10 }),
    ],
  });

const failureOf = async (work: Promise<unknown>): Promise<TRPCClientError<AppRouter>> => {
  const error = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (error instanceof TRPCClientError) return error;
  throw new Error("expected a tRPC error", { cause: error });
};

describe("calls", () => {
  test("queries of one event loop turn travel as one batch, mutations as another", async () => {
    const { statuses, headers, fetch: spied } = spy();
    const client = batching({ fetch: spied });
    const { deviceId } = await tenant.device();
    const [device, list, updated] = await Promise.all([
      client.devices.get.query({ deviceId: deviceId as Device["deviceId"] }),
      client.devices.list.query({ pageSize: 1 }),
      client.devices.update.mutate({ deviceId: deviceId as Device["deviceId"], name: "attic" }),
    ]);
    expect([device.deviceId, list.items.length, updated.name]).toEqual([deviceId, 1, "attic"]);
    expect(statuses).toEqual([200, 200]);
    for (const each of headers) expect(each.get("x-request-id")).toMatch(/^req_/);
  });

  test("a batch with one failed call answers 207, and the failure carries the fields of a REST error", async () => {
    const { statuses, headers, fetch: spied } = spy();
    const client = batching({ fetch: spied });
    const [good, bad] = await Promise.allSettled([client.general.info.query({}), client.devices.get.query({ deviceId: "dev_unknown" })]);
    expect([good.status, bad.status, statuses]).toEqual(["fulfilled", "rejected", [207]]);
    const { data, message } = await failureOf(client.devices.get.query({ deviceId: "dev_unknown" }));
    expect(data?.app).toMatchObject({ code: "DEVICE_NOT_FOUND", retryable: false, details: { deviceId: "dev_unknown" } });
    expect([message, data?.httpStatus, data?.code]).toEqual(["Device dev_unknown was not found.", 404, "NOT_FOUND"]);
    expect(headers.map((each) => each.get("x-request-id"))).toContain(data?.app.requestId);
    expect(JSON.stringify(data)).not.toContain("stack");
  });

  test("a batch of 20 is served, one of 21 is refused", async () => {
    const many = (count: number) => {
      const client = batching({ maxItems: 50 });
      return Promise.all(Array.from({ length: count }, () => client.health.live.query({})));
    };
    expect(await many(20)).toHaveLength(20);
    expect((await failureOf(many(21))).data?.app.code).toBe("VALIDATION_FAILED");
  });

  test("unbatched queries and mutations succeed and fail as batched ones do", async () => {
    const client = createTRPCClient<AppRouter>({ links: [httpLink({ url: `${world.url}/trpc`, headers: { authorization } })] });
    expect((await client.general.me.query({})).subject).toBe(tenant.ownerId);
    expect((await client.apiKeys.create.mutate({ name: "k" })).apiKey).toMatch(/^svk_/);
    expect((await failureOf(client.apiKeys.create.mutate({ name: "" }))).data?.app.details).toMatchObject({ issues: [{ path: "name" }] });
  });

  test.each([
    ["GET", "/trpc/devices.nothing", 404, "NOT_FOUND"],
    ["GET", "/trpc/__proto__", 404, "NOT_FOUND"],
    ["GET", "/trpc/devices", 404, "NOT_FOUND"],
    ["GET", "/trpc/devices.list.call", 404, "NOT_FOUND"],
    ["GET", "/trpc/", 404, "NOT_FOUND"],
    ["GET", "/trpc/devices.list?input={", 400, "MALFORMED_JSON"],
    ["GET", "/trpc/devices.list?input=[]", 400, "VALIDATION_FAILED"],
    ["GET", "/trpc/devices.list?batch=1&input=7", 400, "VALIDATION_FAILED"],
    ["GET", "/trpc/live.watch?input={}", 400, "VALIDATION_FAILED"],
  ])("%s %s answers %i %s", async (method, path, status, code) => {
    const answer = await world.call(owner, method, path);
    const body = Array.isArray(answer.body) ? answer.body[0] : answer.body;
    expect([answer.status, body.error.data.app.code, body.error.data.app.requestId]).toEqual([status, code, answer.headers.get("x-request-id")]);
  });

  test("a batch without a credential answers 401 for each call that needs one", async () => {
    const answer = await world.call({ kind: "none", headers: () => ({}) }, "GET", "/trpc/devices.list,general.info?batch=1&input={}");
    expect([answer.status, answer.body[0].error.data.app.code, answer.body[1].result.data.name, answer.headers.get("www-authenticate")]).toEqual([
      207,
      "UNAUTHORIZED",
      "mooring",
      "Bearer",
    ]);
  });
});

interface Watched {
  readonly events: LiveEvent[];
  readonly states: string[];
  stopped: boolean;
  error: unknown;
  close(): void;
}

/** Subscribes to the live feed and records what arrives, from where the feed begins or is refused: `onStarted` only says that the connection stands. */
const watch = (client: TRPCClient<AppRouter>, input: Parameters<typeof client.live.watch.subscribe>[0] = {}): Promise<Watched> =>
  new Promise((resolve) => {
    const watched: Watched = { events: [], states: [], stopped: false, error: null, close: () => subscription.unsubscribe() };
    const subscription = client.live.watch.subscribe(input, {
      onData: ({ data }) => {
        watched.events.push(data);
        resolve(watched);
      },
      onConnectionStateChange: ({ state }) => {
        watched.states.push(state);
      },
      onStopped: () => {
        watched.stopped = true;
      },
      onError: (error) => {
        watched.error = error;
        resolve(watched);
      },
    });
  });

/** The error with which the gateway refused a stream. */
const refusalOf = async (client: TRPCClient<AppRouter>): Promise<TRPCClientError<AppRouter>> => {
  const watched = await watch(client);
  await eventually(() => expect(watched.error).not.toBeNull());
  watched.close();
  return failureOf(Promise.reject(watched.error));
};

const streaming = (target: Pick<World, "url">, options: { connectionParams?: () => Promise<Record<string, string>> } = {}) => {
  const opened: { readonly url: string; readonly headers: Record<string, string> }[] = [];
  const bearer = options.connectionParams === undefined ? { authorization } : {};
  class Source extends EventSource {
    constructor(url: string | URL) {
      super(url, {
        fetch: (input, init) => {
          const headers = { ...(init?.headers as Record<string, string>), ...bearer };
          opened.push({ url: String(input), headers });
          return fetch(input, { ...(init as RequestInit), headers });
        },
      });
    }
  }
  const client = createTRPCClient<AppRouter>({
    links: [
      httpSubscriptionLink({
        url: `${target.url}/trpc`,
        EventSource: Source,
        ...(options.connectionParams === undefined ? {} : { connectionParams: options.connectionParams }),
      }),
    ],
  });
  return { client, opened };
};

/** Runs one command from beginning to end. */
const finishCommand = async (device: Awaited<ReturnType<TestTenant["device"]>>): Promise<string> => {
  const { body } = await world.call(owner, "POST", `/v1/devices/${device.deviceId}/commands`, { body: { type: "ping" } });
  const { commandId } = body.data;
  const ack = await world.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${commandId}/ack`, { body: { status: "succeeded" } });
  if (ack.status !== 200) throw new Error(JSON.stringify(ack.body));
  return commandId;
};
const completed = ({ events }: Watched) => events.filter(({ type }) => type === "command.completed").map(({ subjectId }) => subjectId);

describe("live feed", () => {
  test("the feed shows a device coming online and a command completing", async () => {
    const device = await tenant.device();
    const { client } = streaming(world);
    const watched = await watch(client, { deviceId: device.deviceId });
    await world.call(device.as, "POST", `/v1/devices/${device.deviceId}/heartbeat`, { body: { cpu: 1 } });
    const commandId = await finishCommand(device);
    await eventually(() => {
      expect(watched.events.map(({ type }) => type)).toContain("device.online");
      expect(completed(watched)).toEqual([commandId]);
    });
    watched.close();
  });

  test("after a broken connection the feed resumes after its last event", async () => {
    const device = await tenant.device();
    const wire = await openBreakableWire(world);
    const { client, opened } = streaming(wire);
    const watched = await watch(client, { types: ["command.completed"], deviceId: device.deviceId });
    const commandIds = [await finishCommand(device)];
    await eventually(() => expect(completed(watched)).toEqual(commandIds));
    wire.cut();
    // Some complete while nobody listens, one after the stream is back.
    for (let count = 0; count < 3; count += 1) commandIds.push(await finishCommand(device));
    await eventually(() => expect(opened.length).toBeGreaterThan(1));
    commandIds.push(await finishCommand(device));
    await eventually(() => expect(completed(watched)).toEqual(commandIds));
    const again = opened[1];
    expect(`${again?.url} ${JSON.stringify(again?.headers)}`).toContain(watched.events.find(({ type }) => type === "command.completed")?.id);
    watched.close();
    await wire.close();
  });

  test("a ticket opens one stream", async () => {
    const device = await tenant.device();
    const { data } = (await world.call(owner, "POST", "/v1/auth/stream-ticket", { body: {} })).body;
    expect(Date.parse(data.expiresAt) - Date.now()).toBeLessThan(61_000);
    const { client } = streaming(world, { connectionParams: async () => ({ ticket: data.ticket }) });
    const watched = await watch(client, { deviceId: device.deviceId });
    const commandId = await finishCommand(device);
    await eventually(() => expect(completed(watched)).toEqual([commandId]));
    watched.close();
    const refused = await refusalOf(streaming(world, { connectionParams: async () => ({ ticket: data.ticket }) }).client);
    expect(refused.data?.app).toMatchObject({ code: "UNAUTHORIZED", details: { reason: "ticket_invalid" } });
  });

  test("the feed shows no other tenant's events and refuses an invalid ticket", async () => {
    const other = await world.tenant();
    const device = await other.device();
    const watched = await watch(streaming(world).client);
    await world.call(device.as, "POST", `/v1/devices/${device.deviceId}/heartbeat`, { body: { cpu: 1 } });
    const ours = await tenant.device();
    const commandId = await finishCommand(ours);
    await eventually(() => expect(completed(watched)).toContain(commandId));
    expect(watched.events.some(({ subjectId }) => subjectId === device.deviceId)).toBe(false);
    watched.close();
    const refused = await refusalOf(streaming(world, { connectionParams: async () => ({ ticket: "wrong" }) }).client);
    expect(refused.data?.app.code).toBe("UNAUTHORIZED");
  });

  test("streams are limited per credential and per tenant, and a closed stream frees its place", async () => {
    const bounded = await startWorld({ LIVE_STREAMS_PER_CREDENTIAL: "2", LIVE_STREAMS_PER_TENANT: "3" });
    const theirs = await bounded.tenant();
    const open = async (as: Caller) => {
      const stop = new AbortController();
      const { body } = await fetch(`${bounded.url}/trpc/live.watch?input={}`, {
        headers: { ...as.headers(""), accept: "text/event-stream" },
        signal: stop.signal,
      });
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      while (!/stream\.position|serialized-error/.test(text)) text += (await reader?.read())?.value ?? "";
      return { text, close: () => stop.abort() };
    };
    const [anna, ben] = [await theirs.user("owner"), await theirs.user("viewer")];
    const [first] = [await open(anna), await open(anna)];
    const refused = (await open(anna)).text;
    expect(refused).toMatch(/"httpStatus":429/);
    expect(refused).toMatch(/"code":"STREAM_LIMIT_REACHED","retryable":true,.*"retryAfter":30,"details":\{"per":"credential","limit":2\}/);
    await open(ben);
    expect((await open(theirs.apiKey)).text).toMatch(/"details":\{"per":"tenant","limit":3\}/);
    first.close();
    await eventually(async () => expect((await open(theirs.apiKey)).text).toMatch(/stream\.position/));
    await bounded.close();
  });

  test("a stream ends when the gateway closes and does not delay the close", async () => {
    const other = await startWorld({ SHUTDOWN_SECONDS: "60" });
    const theirs = await other.tenant();
    const stream = await fetch(`${other.url}/trpc/live.watch?input={}`, {
      headers: { accept: "text/event-stream", authorization: `Bearer ${await theirs.token()}` },
    });
    expect([stream.status, stream.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    const ended = stream.text();
    await withTimeout(other.close(), 20_000, "the gateway did not close");
    expect(await ended).toContain("event: connected");
  });
});

/** JSON has no undefined: a field is missing or has a value. */
type Json<T> = T extends readonly (infer Item)[] ? Json<Item>[] : T extends object ? { [Key in keyof T]: Json<Exclude<T[Key], undefined>> } : T;

test("the client's types are the contract's", () => {
  const client = batching();
  expectTypeOf<Awaited<ReturnType<typeof client.devices.get.query>>>().toEqualTypeOf<Json<Device>>();
  expectTypeOf<Awaited<ReturnType<typeof client.commands.queue.mutate>>["status"]>().toEqualTypeOf<Command["status"]>();
  // A portal takes its ids as plain text from URLs and forms.
  expectTypeOf<Parameters<typeof client.devices.get.query>[0]>().toEqualTypeOf<{ deviceId: string }>();
  // The compiler checks these; they never run.
  const wrong = [
    // @ts-expect-error an id is a string
    () => client.devices.get.query({ deviceId: 1 }),
    // @ts-expect-error a mutation has no query
    () => client.devices.update.query({ deviceId: "dev_1" }),
    // @ts-expect-error a query has no mutate
    () => client.devices.list.mutate({}),
    // @ts-expect-error a field is missing
    () => client.commands.queue.mutate({ deviceId: "dev_1" }),
    // @ts-expect-error an unknown field
    () => client.devices.list.query({ statsu: "online" }),
    // @ts-expect-error a subscription has no query
    () => client.live.watch.query({}),
    // @ts-expect-error an unknown operation
    () => client.devices.explode.mutate({}),
  ];
  expect(wrong).toHaveLength(7);
});
