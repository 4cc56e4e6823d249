// What the tests of webhooks share: a node, a receiver, and tenants that subscribe and cause events.
import { expect } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Caller, startWorld, type TestTenant, type WorldOptions } from "../../kit/gateway/world.ts";
import { type Received, startReceiver } from "../../kit/net/receiver.ts";

export interface HookOwner {
  readonly tenant: TestTenant;
  readonly as: Caller;
}

export const openHooks = async (env: Readonly<Record<string, string>> = {}, options: WorldOptions = {}) => {
  const [world, receiver] = await Promise.all([startWorld(env, options), startReceiver()]);
  let paths = 0;
  const newPath = (): string => {
    paths += 1;
    return `/hook-${paths}`;
  };
  const call = async ({ as }: HookOwner, route: string, body?: object) => {
    const [method = "", path = ""] = route.split(" ");
    const { status: code, body: answer } = await world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
    return { code, data: answer?.data, error: answer?.error };
  };
  const newOwner = async (options: { readonly unlimited?: boolean } = {}): Promise<HookOwner> => {
    const tenant = await world.tenant(options);
    return { tenant, as: await tenant.user("owner") };
  };
  const subscribe = async (owner: HookOwner, more: object = {}) => {
    const path = newPath();
    const { data, code } = await call(owner, "POST /webhooks", { url: receiver.url(path), events: ["fleet.*"], ...more });
    expect(code).toBe(201);
    return { ...data, path };
  };
  /** Causes `fleet.created` and returns the fleet's id, the subject. */
  const makeFleet = async (owner: HookOwner, name = "kiosks"): Promise<string> => (await call(owner, "POST /fleets", { name })).data.fleetId;
  const rename = (owner: HookOwner, fleetId: string, name: string) => call(owner, `PATCH /fleets/${fleetId}`, { name });
  const arrived = (path: string, count: number, boundMs?: number): Promise<readonly Received[]> =>
    eventually(() => {
      expect(receiver.at(path)).toHaveLength(count);
      return receiver.at(path);
    }, boundMs);
  const deliveries = async (owner: HookOwner, webhookId: string) => (await call(owner, `GET /webhooks/${webhookId}/deliveries`)).data;
  /** What waits for its next attempt need not wait any longer. */
  const hurry = async (webhookId: string): Promise<void> => {
    await world.sql.query("update webhook_deliveries set next_attempt_at = now() - interval '1 second' where webhook_id = $1 and status = 'retrying'", [
      webhookId,
    ]);
    await world.sql.query("update webhook_endpoints set epoch = epoch + 1, next_due_at = now() - interval '1 second' where webhook_id = $1", [webhookId]);
  };
  return {
    ...{ world, receiver, newPath, call, newOwner, subscribe, makeFleet, rename, arrived, deliveries, hurry },
    close: async (): Promise<void> => void (await Promise.all([world.close(), receiver.close()])),
  };
};
export type Hooks = Awaited<ReturnType<typeof openHooks>>;

export const namesIn = (received: readonly Received[]): readonly string[] => received.map(({ body }) => JSON.parse(body).data.name);
