// Deploys apps to a fleet through the public API and follows the deployments to their ends. Every call is safe to repeat.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { Deployment } from "../../protocol/index.ts";
import { callWithRetry, type Http, type HttpAnswer, hasSucceeded, type PairedDevice, pause, type RetryOptions, refusal, type Time } from "../agent/index.ts";
import { createLatency, type Percentiles } from "./latency.ts";
import { pageOf } from "./page.ts";
import { authOf, type PortalCredentials } from "./portal.ts";

/** Templates whose apps need no container. Each takes its port from the property `port`. */
export const TEMPLATES = ["static-site", "key-value", "paste-bin", "status-page", "feed-reader"] as const;
const FIRST_PORT = 21_000;
const PAGE = 100;
const AGAIN_MS = 500;
const OPEN = [
  "pending",
  "queued",
  "deploying",
  "updating",
  "rolling_back",
  "stopping",
  "cancelling",
  "deleting",
] as const satisfies readonly Deployment["status"][];

const Shown = Deployment.pick({ deploymentId: true, status: true, failure: true, updatedAt: true });
export type ShownDeployment = z.output<typeof Shown>;
const Created = z.object({ data: Shown });
const Listed = pageOf(Shown);

export interface DeploymentOrder {
  readonly deviceId: string;
  readonly appName: string;
  readonly configuration: Readonly<Record<string, unknown>>;
  readonly timeoutSeconds: number;
}
export type DeploymentVerb = "redeploy" | "rollback" | "stop" | "start" | "cancel";

export interface DeploymentPortal {
  create(order: DeploymentOrder, key: string, retry: RetryOptions): Promise<string>;
  /** Resolves to any answer, since a change may come too late or too early. */
  change(
    deploymentId: string,
    verb: DeploymentVerb,
    change: { readonly key: string; readonly body?: object; readonly retry: RetryOptions },
  ): Promise<HttpAnswer>;
  /** A page of the tenant's deployments in these states; all states: null. */
  list(page: number, statuses: readonly string[] | null, retry: RetryOptions): Promise<z.output<typeof Listed>>;
}

export const createDeploymentPortal = (http: Http, credentials: PortalCredentials): DeploymentPortal => {
  const auth = authOf(credentials);
  const post = (path: string, key: string, body: object, retry: RetryOptions): Promise<HttpAnswer> =>
    callWithRetry(() => http.call({ method: "POST", path, headers: { ...auth, "idempotency-key": key }, body: JSON.stringify(body) }), retry);
  return {
    create: async (order, key, retry) => {
      const answer = await post("/v1/deployments", key, order, retry);
      if (!hasSucceeded(answer)) throw refusal("the gateway refused the deployment", answer);
      return Created.parse(answer.body).data.deploymentId;
    },
    change: (deploymentId, verb, { key, body = {}, retry }) => post(`/v1/deployments/${deploymentId}/${verb}`, key, body, retry),
    list: async (page, statuses, retry) => {
      const filter = statuses === null ? "" : `&status=${statuses.join(",")}`;
      const path = `/v1/deployments?page=${page}&pageSize=${PAGE}${filter}`;
      const answer = await callWithRetry(() => http.call({ method: "GET", path, headers: auth }), retry);
      if (!hasSucceeded(answer)) throw refusal("the gateway refused to list deployments", answer);
      return Listed.parse(answer.body);
    },
  };
};

/** One of each template on a device, on ports of their own. */
export const ordersFor = (members: readonly Pick<PairedDevice, "deviceId">[], perDevice: number, timeoutSeconds: number): readonly DeploymentOrder[] =>
  members.flatMap(({ deviceId }) =>
    Array.from({ length: perDevice }, (_, n) => ({
      deviceId,
      appName: TEMPLATES[n % TEMPLATES.length] ?? TEMPLATES[0],
      configuration: { port: FIRST_PORT + n },
      timeoutSeconds,
    })),
  );

export interface Deployed {
  readonly deploymentId: string;
  readonly order: DeploymentOrder;
  /** By the wall clock, like the times of records. */
  readonly askedAtMs: number;
}

/** Asks for all at once; the client's sockets limit how many the gateway sees at a time. */
export const deployAll = (portal: DeploymentPortal, orders: readonly DeploymentOrder[], retry: RetryOptions): Promise<readonly Deployed[]> => {
  const askedAtMs = retry.time.wallMs();
  return Promise.all(orders.map(async (order) => ({ order, askedAtMs, deploymentId: await portal.create(order, randomUUID(), retry) })));
};

/** Whether some of these are still changing. A tenant may have others, such as those that wait for a device that is switched off. */
const areOpen = async (portal: DeploymentPortal, own: ReadonlySet<string>, retry: RetryOptions): Promise<boolean> => {
  for (let page = 1; ; page += 1) {
    const { data, meta } = await portal.list(page, OPEN, retry);
    if (data.some(({ deploymentId }) => own.has(deploymentId))) return true;
    if (!meta.pagination.hasMore) return false;
  }
};

/** False if some are still changing when the patience is over. */
export const untilDeployed = async (portal: DeploymentPortal, deployed: readonly Pick<Deployed, "deploymentId">[], retry: RetryOptions): Promise<boolean> => {
  const own = new Set(deployed.map(({ deploymentId }) => deploymentId));
  for (;;) {
    if (!(await areOpen(portal, own, retry))) return true;
    if (retry.signal?.aborted || retry.time.elapsedMs() + AGAIN_MS >= retry.untilMs) return false;
    await pause(retry.time, AGAIN_MS, retry.signal);
  }
};

const readAll = async (portal: DeploymentPortal, retry: RetryOptions): Promise<ReadonlyMap<string, ShownDeployment>> => {
  const shown = new Map<string, ShownDeployment>();
  for (let page = 1; ; page += 1) {
    const { data, meta } = await portal.list(page, null, retry);
    for (const one of data) shown.set(one.deploymentId, one);
    if (!meta.pagination.hasMore) return shown;
  }
};

export interface DeploymentSummary {
  readonly ordered: number;
  readonly active: number;
  /** By reason. */
  readonly failed: Readonly<Record<string, number>>;
  /** Neither active nor failed, or unknown to the gateway. */
  readonly open: number;
  /** From the order to the record's change to active. */
  readonly toActiveMs: Percentiles;
  /** Until the last one was active. */
  readonly allActiveMs: number | null;
}

/** Each is active or, if failures are injected, has failed. */
export const allEnded = (summary: DeploymentSummary | null, mayFail: boolean): boolean =>
  summary === null || (summary.open === 0 && (mayFail || summary.active === summary.ordered));

const summaryOf = (deployed: readonly Deployed[], shown: ReadonlyMap<string, ShownDeployment>): DeploymentSummary => {
  const latency = createLatency();
  const failed: Record<string, number> = {};
  let [active, open, allActiveMs] = [0, 0, null as number | null];
  for (const { deploymentId, askedAtMs } of deployed) {
    const { status, failure, updatedAt } = shown.get(deploymentId) ?? { status: "unknown", failure: null, updatedAt: "" };
    if (status === "active") {
      const tookMs = Date.parse(updatedAt) - askedAtMs;
      active += 1;
      allActiveMs = Math.max(allActiveMs ?? 0, tookMs);
      latency.add(tookMs);
    } else if (status === "failed") failed[failure?.reason ?? "no reason"] = (failed[failure?.reason ?? "no reason"] ?? 0) + 1;
    else open += 1;
  }
  return { ordered: deployed.length, active, failed, open, toActiveMs: latency.percentiles(), allActiveMs };
};

export interface FleetDeployments {
  readonly http: Http;
  readonly credentials: PortalCredentials;
  readonly members: readonly PairedDevice[];
  readonly perDevice: number;
  readonly time: Time;
  readonly withinMs: number;
  readonly signal: AbortSignal;
}

/** The shortest that the gateway takes. */
const TIMEOUT_SECONDS = 60;

/** Deploys to the whole fleet and waits until each deployment is active or has failed. */
export const deployToFleet = async ({ http, credentials, members, perDevice, time, withinMs, signal }: FleetDeployments): Promise<DeploymentSummary> => {
  const portal = createDeploymentPortal(http, credentials);
  const retry = { time, random: Math.random, untilMs: time.elapsedMs() + TIMEOUT_SECONDS * 1_000 + withinMs, signal };
  const deployed = await deployAll(portal, ordersFor(members, perDevice, TIMEOUT_SECONDS), retry);
  await untilDeployed(portal, deployed, retry);
  return summaryOf(deployed, await readAll(portal, { ...retry, untilMs: time.elapsedMs() + withinMs }));
};
