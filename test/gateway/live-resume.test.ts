// @mooring/client over a connection that breaks: a live stream loses no event or reports the gap.
import { EventSource } from "eventsource";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createMooring, type Mooring } from "../../protocol/client/index.ts";
import type { LiveEvent } from "../../protocol/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { type BreakableWire, openBreakableWire } from "../kit/stores/breakable-wire.ts";

const PATIENCE_MS = 30_000;

/** A stream that also says how soon to come back: otherwise the library waits for three seconds after each of eight cuts. */
const soon = async (url: string | URL, init: RequestInit): Promise<Response> => {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const hint = new TransformStream<Uint8Array, Uint8Array>({ start: (controller) => controller.enqueue(Buffer.from("retry: 100\n\n")) });
  const { status, headers } = response;
  return new Response(response.body.pipeThrough(hint), { status, headers });
};
class SoonEventSource extends EventSource {
  constructor(url: string | URL, init: ConstructorParameters<typeof EventSource>[1]) {
    super(url, { ...init, fetch: soon });
  }
}

// Browsers have an EventSource, Node does not.
beforeAll(() => void vi.stubGlobal("EventSource", SoonEventSource));
afterAll(() => void vi.unstubAllGlobals());

let always: World;
/** The gateway that the portal calls; it dies and comes back. */
let gateway: World;
let wire: BreakableWire;
let tenant: TestTenant;
let owner: Caller;
let token: string;
beforeAll(async () => {
  always = await startWorld();
  gateway = await startWorld({}, { beside: always });
  wire = await openBreakableWire(gateway);
  tenant = await always.tenant();
  owner = await tenant.user("owner");
  token = await tenant.token();
});
afterAll(async () => {
  await wire.close();
  await gateway.close();
  await always.close();
});

const portal = (ask = () => token): Mooring => createMooring({ url: wire.url, token: ask });

const watch = async (mooring: Mooring) => {
  const events: LiveEvent[] = [];
  const errors: unknown[] = [];
  let starts = 0;
  const subscription = mooring.live.watch.subscribe(
    { types: ["command.completed", "api_key.*"] },
    {
      onStarted: () => {
        starts += 1;
      },
      onData: ({ data }) => void events.push(data),
      onError: (error) => void errors.push(error),
      onStopped: () => void errors.push("stopped"),
    },
  );
  await eventually(() => expect(events[0]?.type).toBe("stream.position"));
  const completed = () => events.filter(({ type }) => type === "command.completed").map(({ subjectId }) => subjectId);
  const gaps = () => events.filter(({ type }) => type === "stream.gap").map(({ data }) => data);
  return { events, errors, completed, gaps, starts: () => starts, close: () => subscription.unsubscribe() };
};

/** Runs one command from beginning to end on the gateway that stays. */
const finishCommand = async (device: Awaited<ReturnType<TestTenant["device"]>>): Promise<string> => {
  const { body } = await always.call(owner, "POST", `/v1/devices/${device.deviceId}/commands`, { body: { type: "ping" } });
  const { commandId } = body.data;
  const ack = await always.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${commandId}/ack`, { body: { status: "succeeded" } });
  expect(ack.status).toBe(200);
  return commandId;
};

test("cuts before and between events and a restart of the gateway neither lose nor repeat an event", { timeout: 90_000 }, async () => {
  const device = await tenant.device();
  const watched = await watch(portal());
  const commandIds: string[] = [];
  const happen = async (count: number) => {
    for (let index = 0; index < count; index += 1) commandIds.push(await finishCommand(device));
  };
  const allSeen = () => eventually(() => expect(watched.completed()).toEqual(commandIds), PATIENCE_MS);

  await wire.down();
  await happen(2);
  await wire.restore();
  await allSeen();

  wire.cut();
  await happen(2);
  await allSeen();

  await gateway.close();
  await wire.down();
  await happen(2);
  gateway = await startWorld({}, { beside: always });
  await wire.restore(gateway);
  await happen(1);
  await allSeen();
  expect([watched.gaps(), watched.errors]).toEqual([[], []]);
  expect(watched.starts()).toBeGreaterThanOrEqual(4);
  watched.close();
});

test("a viewer that missed too many events, or whose position was deleted, learns of the gap and sees what comes next", {
  timeout: 90_000,
}, async () => {
  const device = await tenant.device();
  const watched = await watch(portal());
  const first = await finishCommand(device);
  await eventually(() => expect(watched.completed()).toEqual([first]), PATIENCE_MS);
  const newest = async (): Promise<number> =>
    (await always.sql.query("select max(last_sequence)::int as newest from outbox_dispatches where tenant_id = $1", [tenant.tenantId])).rows[0].newest;

  await wire.down();
  const before = await newest();
  await always.sql.query(
    `insert into outbox_events (event_id, tenant_id, type, subject_id, data) select 'evt_many_' || n, $1, 'tenant.updated', 'many', '{}' from generate_series(1, 1001) n`,
    [tenant.tenantId],
  );
  await eventually(async () => expect(await newest()).toBe(before + 1_001), PATIENCE_MS);
  await wire.restore();
  await eventually(() => expect(watched.gaps()).toEqual([{ reason: "too_many", missed: 1_001 }]), PATIENCE_MS);
  const second = await finishCommand(device);
  await eventually(() => expect(watched.completed()).toEqual([first, second]), PATIENCE_MS);

  await wire.down();
  const third = await finishCommand(device);
  await eventually(async () => expect(await newest()).toBe(before + 1_003), PATIENCE_MS);
  await always.sql.query("delete from outbox_events where tenant_id = $1 and subject_id in ('many', $2, $3)", [tenant.tenantId, first, second]);
  await wire.restore();
  await eventually(
    () =>
      expect(watched.gaps()).toEqual([
        { reason: "too_many", missed: 1_001 },
        { reason: "unknown_position", missed: null },
      ]),
    PATIENCE_MS,
  );
  const fourth = await finishCommand(device);
  await eventually(() => expect(watched.completed()).toEqual([first, second, fourth]), PATIENCE_MS);
  expect(watched.completed()).not.toContain(third);
  expect(watched.errors).toEqual([]);
  watched.close();
});

test("an expired token ends the subscription instead of retrying forever", async () => {
  let current = token;
  const watched = await watch(portal(() => current));
  current = "expired";
  wire.cut();
  await eventually(() => expect(watched.errors).toMatchObject([{ data: { app: { code: "UNAUTHORIZED" } } }]), PATIENCE_MS);
});
