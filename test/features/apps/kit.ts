// A device whose agent answers orders for apps over a real socket, as a test says.
import type { AgentOptions } from "../../../agent-sim/agent/index.ts";
import type { DesiredApp, ReportedApp } from "../../../protocol/index.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { openAgent } from "../../kit/gateway/agents.ts";
import { DEFAULTS, TEMPLATE } from "../../kit/gateway/app-template.ts";
import type { Answer, Caller, Device, TestTenant, World } from "../../kit/gateway/world.ts";

export { DEFAULTS, TEMPLATE };

export interface Order {
  readonly verb: string;
  readonly app: DesiredApp;
  readonly desiredVersion: number;
}
type Answering = (order: Order) => ReportedApp | Promise<ReportedApp>;

const STATES: Readonly<Record<string, ReportedApp["state"]>> = { deploy: "running", start: "running", restart: "running", stop: "stopped", remove: "removed" };

/** As an agent reports it. */
export const reportOf = (appId: string, more: Partial<ReportedApp> = {}): ReportedApp => ({
  ...{ appId: appId as ReportedApp["appId"], revision: 1, state: "running", health: "healthy", failure: null, restarts: 0 },
  ...{ cpuPercent: 1.5, memoryBytes: 1_048_576, ports: { http: 8_701 } },
  ...more,
});
export const asOrdered: Answering = ({ verb, app }) => reportOf(app.appId, { revision: app.revision, state: STATES[verb] ?? "failed" });

export const failureIn = (revision: number, more: Partial<NonNullable<ReportedApp["failure"]>> = {}): NonNullable<ReportedApp["failure"]> => ({
  ...{ stage: "health", reason: "HEALTH_CHECK_FAILED", message: "the page answers 500", revision, lines: ["starting", "cannot start"] },
  ...more,
});

export interface Rig {
  readonly world: World;
  readonly tenant: TestTenant;
  readonly device: Device;
  readonly owner: Caller;
  readonly orders: Order[];
  /** From now on the agent answers so. */
  answer(next: Answering): void;
  /** The answer's data, or an error with status and body. */
  ask(route: string, body?: object, as?: Caller, headers?: Readonly<Record<string, string>>): Promise<Answer["body"]>;
  refusal(route: string, body?: object, as?: Caller, headers?: Readonly<Record<string, string>>): Promise<readonly [number, string, Answer["body"]]>;
  report(version: number, ...apps: readonly ReportedApp[]): Promise<Answer["body"]>;
  until(path: string, status: string): Promise<Answer["body"]>;
  deploy(more?: object): Promise<Answer["body"]>;
  eventsOf(subjectId: string): Promise<readonly string[]>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface RigOptions {
  readonly online?: boolean;
  /** Of the device's agent, beside those of apps. */
  readonly handlers?: (device: Device) => AgentOptions["handlers"];
}

export const openRig = async (world: World, { online = true, handlers: others = () => ({}) }: RigOptions = {}): Promise<Rig> => {
  const tenant = await world.tenant();
  const [device, owner] = [await tenant.device(), await tenant.user("owner")];
  const orders: Order[] = [];
  let answering: Answering = asOrdered;
  const handlerOf = (verb: string) => ({
    long: false,
    cancelable: true,
    run: async (payload: unknown) => {
      const order = { verb, ...(payload as Omit<Order, "verb">) }; // as: the contract says what is in it
      orders.push(order);
      return { app: await answering(order) };
    },
  });
  const handlers = { ...Object.fromEntries(Object.keys(STATES).map((verb) => [`app.${verb}`, handlerOf(verb)])), ...others(device) };
  const { agent, stop } = openAgent(world.url, device, { handlers });
  const start = async (): Promise<void> => {
    agent.start();
    await eventually(() => {
      if (agent.state !== "ready") throw new Error(`the agent is ${agent.state}`);
    });
  };
  const call = async (route: string, body: object | undefined, as: Caller, headers: Readonly<Record<string, string>> = {}): Promise<Answer> => {
    const [method = "", path = ""] = route.split(" ");
    return world.call(as, method, `/v1${path}`, { headers, ...(body === undefined ? {} : { body }) });
  };
  const ask: Rig["ask"] = async (route, body, as = owner, headers) => {
    const answer = await call(route, body, as, headers);
    if (answer.status >= 300) throw new Error(`${route}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body?.data;
  };
  if (online) await start();
  return {
    ...{ world, tenant, device, owner, orders, ask, start, stop },
    answer: (next) => {
      answering = next;
    },
    refusal: async (route, body, as = owner, headers) => {
      const { status, body: refused } = await call(route, body, as, headers);
      return [status, refused?.code, refused?.details];
    },
    report: (version, ...apps) => ask("PUT /agent/reported-state", { version, apps }, device.as),
    until: (path, status) =>
      eventually(async () => {
        const data = await ask(`GET ${path}`);
        if (data.status !== status) throw new Error(`${path} is ${data.status}, not ${status}: ${JSON.stringify(data.failure)}`);
        return data;
      }),
    deploy: (more = {}) => ask("POST /deployments", { appId: TEMPLATE, deviceId: device.deviceId, ...more }),
    eventsOf: async (subjectId) => {
      const values = [tenant.tenantId, subjectId];
      const { rows } = await world.sql.query("select type from outbox_events where tenant_id = $1 and subject_id = $2 order by position", values);
      return rows.map(({ type }) => type);
    },
  };
};
