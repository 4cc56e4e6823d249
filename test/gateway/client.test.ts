// @mooring/client as a portal uses it: how it batches calls, what it retries, and whose token it sends.
import { EventSource } from "eventsource";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createMooring, isMooringError, type MooringOptions } from "../../protocol/client/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { openBreakableWire } from "../kit/stores/breakable-wire.ts";

let world: World;
let tenant: TestTenant;
let token: string;
beforeAll(async () => {
  world = await startWorld();
  tenant = await world.tenant();
  token = await tenant.token();
});
afterAll(() => world.close());

const portal = (options: Partial<MooringOptions> = {}) => createMooring({ url: world.url, token, ...options });
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

describe("requests", () => {
  test("a page may make more calls at once than fit into one batch", async () => {
    const { deviceId } = await tenant.device();
    const mooring = portal();
    const devices = await Promise.all(Array.from({ length: 50 }, () => mooring.devices.get.query({ deviceId })));
    expect(devices.map((device) => device.deviceId)).toEqual(devices.map(() => deviceId));
  });

  test("a page may make more calls at once than fit into one URL", async () => {
    let asked = 0;
    const counting = () => {
      asked += 1;
      return token;
    };
    const mooring = portal({ token: counting });
    const lists = await Promise.all(Array.from({ length: 19 }, (_, index) => mooring.devices.list.query({ q: `${index}${"€".repeat(90)}` })));
    expect(lists.map(({ total }) => total)).toEqual(lists.map(() => 0));
    // The client did not fall back to one request per call.
    expect(asked).toBeLessThan(5);
  });

  test("the URL may end with a slash", async () => {
    expect((await portal({ url: `${world.url}/` }).general.me.query({})).credential).toBe("user");
  });

  test("the client calls the token function before every request, be it synchronous or not", async () => {
    const asked: string[] = [];
    const mooring = portal({
      token: async () => {
        asked.push("later");
        return token;
      },
    });
    await mooring.general.me.query({});
    await mooring.general.me.query({});
    expect(asked).toHaveLength(2);
    expect((await portal({ token: () => token }).general.me.query({})).credential).toBe("user");
  });

  test("an error of the gateway carries its code, and any other error is not a MooringError", async () => {
    const error = await failureOf(portal().devices.get.query({ deviceId: "no such device" }));
    expect(isMooringError(error) && error.data?.app.code).toBe("DEVICE_NOT_FOUND");
    expect(isMooringError(new Error("other"))).toBe(false);
  });
});

describe("retries", () => {
  test("a query survives a moment without the gateway", async () => {
    const wire = await openBreakableWire(world);
    await wire.down();
    let asked = 0;
    const asking = portal({
      url: wire.url,
      token: async () => {
        asked += 1;
        if (asked === 2) await wire.restore();
        return token;
      },
    }).general.me.query({});
    expect((await asking).credential).toBe("user");
    await wire.close();
  });

  test("a mutation is sent once, because only the portal knows whether it may be repeated", async () => {
    const wire = await openBreakableWire(world);
    await wire.down();
    let asked = 0;
    const counting = () => {
      asked += 1;
      return token;
    };
    const error = await failureOf(portal({ url: wire.url, token: counting }).devices.provision.mutate({ count: 1 }));
    expect([isMooringError(error), asked]).toEqual([true, 1]);
    await wire.close();
  });

  test("a query gives up after three attempts, and at once when a retry cannot help", async () => {
    const wire = await openBreakableWire(world);
    await wire.down();
    let asked = 0;
    const counting = () => {
      asked += 1;
      return token;
    };
    await failureOf(portal({ url: wire.url, token: counting }).general.me.query({}));
    expect(asked).toBe(3);
    await failureOf(portal({ token: counting }).devices.get.query({ deviceId: "no such device" }));
    expect(asked).toBe(4);
    await wire.close();
  });

  test("an aborted query is not retried", async () => {
    const wire = await openBreakableWire(world);
    await wire.down();
    const caller = new AbortController();
    let asked = 0;
    const counting = () => {
      asked += 1;
      caller.abort();
      return token;
    };
    await failureOf(portal({ url: wire.url, token: counting }).general.me.query({}, { signal: caller.signal }));
    expect(asked).toBe(1);
    await wire.close();
  });
});

describe("live events", () => {
  test("live events arrive through the EventSource that the portal passes", async () => {
    const types: string[] = [];
    const watching = portal({ EventSource }).live.watch.subscribe({}, { onData: ({ data }) => void types.push(data.type) });
    await eventually(() => expect(types).toEqual(["stream.position"]));
    watching.unsubscribe();
  });

  test("without an EventSource the subscription fails with a message that says what to pass", async () => {
    const errors: unknown[] = [];
    portal().live.watch.subscribe({}, { onError: (error) => void errors.push(error) });
    await eventually(() => expect(errors).toMatchObject([{ message: expect.stringContaining("Pass one to createMooring") }]));
  });
});
