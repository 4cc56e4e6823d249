// Logs of apps, passed from agents to viewers and never stored: their end (tail.ts) and what comes (follows.ts), by way of routes.ts.
import { type contract, createMasker, type LogBatch, type LogLine, type LogTail } from "../../../../protocol/index.ts";
import type { Clock } from "../../../core/clock.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import type { OutcomeHandler, OutcomeHandlers } from "../../../core/ports/command-outcomes.ts";
import type { Enqueue } from "../../../core/ports/delivery.ts";
import type { SystemScope, TenantScope } from "../../../core/scope.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { Job } from "../../../platform/jobs.ts";
import type { SecretBox } from "../../../platform/keys/secrets.ts";
import { openSecrets } from "../app-secrets.ts";
import { unknownApp } from "../handlers/changes.ts";
import { appsOfDeployment, findApp } from "../store/apps.ts";
import { createFollows, type LogSource } from "./follows.ts";
import type { LineBounds } from "./line-buffer.ts";
import { createLogOrders, type LoggedApp, type LogOrderBounds } from "./orders.ts";
import { createLogRoutes, type LogRoutesDeps } from "./routes.ts";
import { readTail } from "./tail.ts";

export interface AppLogSettings extends LogOrderBounds, LineBounds {
  readonly tailBudgetMs: number;
  readonly renewEveryMs: number;
}

const DEFAULTS: AppLogSettings = {
  logsPerDevice: 8,
  logsPerTenant: 100,
  bufferedLines: 2_000,
  bufferedCharacters: 1_048_576,
  tailBudgetMs: 15_000,
  renewEveryMs: 2_000,
};

/** What the logs need of other features, and of the cluster. */
export interface AppLogsWiring extends LogRoutesDeps {
  /** Counts a stream of the caller, or refuses it. Returns the function that gives its place back. */
  readonly takeStream: (scope: TenantScope) => () => void;
  /** False while messages between nodes get lost. */
  readonly nodesReach: () => boolean;
  readonly settings?: Partial<AppLogSettings> | undefined;
}

export interface AppLogsDeps {
  readonly db: Db;
  readonly secretBox: Pick<SecretBox, "open">;
  readonly clock: Clock;
  readonly enqueue: Enqueue;
  readonly isOnline: (scope: SystemScope, deviceId: string) => Promise<boolean>;
  readonly logs: AppLogsWiring;
}

interface AskedTail {
  readonly tail: number;
  readonly since?: string | undefined;
}

/** The logs of an app, and those of a deployment's app. */
export interface LogReads {
  tail(scope: TenantScope, app: LoggedApp | null, asked: AskedTail & { readonly signal: AbortSignal }): Promise<LogTail>;
  follow(scope: TenantScope, app: LoggedApp | null, signal: AbortSignal): AsyncGenerator<LogBatch>;
  appOf(scope: SystemScope, deploymentId: string): Promise<LoggedApp | null>;
}

type Names = "logs" | "followLogs";

export interface AppLogs {
  readonly handlers: Pick<Handlers<typeof contract.apps>, Names>;
  readonly outcomes: Pick<OutcomeHandlers<typeof contract.apps>, Names>;
  readonly reads: LogReads;
  readonly job: Job;
  receive(scope: SystemScope, deviceId: string, chunk: string): Promise<boolean>;
}

/** The secrets that a viewer's lines are masked with are read again after it. */
const MASK_MS = 30_000;
const NOTHING: LogTail = { lines: [], truncated: false };

export const createAppLogs = ({ db, secretBox, clock, enqueue, isOnline, logs: wiring }: AppLogsDeps): AppLogs => {
  const settings = { ...DEFAULTS, ...wiring.settings };
  const routes = createLogRoutes(wiring);
  const orders = createLogOrders({ db, enqueue, bounds: settings });
  const isReported = async (scope: SystemScope, appId: string): Promise<boolean> => ((await findApp(db, scope, appId))?.reported ?? null) !== null;
  const sourceOf = async (scope: SystemScope, { appId, deviceId }: LoggedApp): Promise<LogSource> => {
    if (!(await isReported(scope, appId))) return "not_installed";
    return (await isOnline(scope, deviceId)) ? "ready" : "device_offline";
  };
  const follows = createFollows({ ...wiring, clock, orders, routes, sourceOf, bounds: settings });

  /** The agent has masked the lines already, as far as it knows how. */
  const maskOf = async (scope: SystemScope, { appId }: LoggedApp): Promise<(line: LogLine) => LogLine> => {
    const row = await findApp(db, scope, appId);
    const { mask } = createMasker(row === null ? [] : Object.values(openSecrets(secretBox, scope, row)));
    return (line) => ({ ...line, text: mask(line.text) });
  };
  const masked = async function* (scope: SystemScope, app: LoggedApp, batches: AsyncIterable<LogBatch>): AsyncGenerator<LogBatch> {
    let [mask, untilMs] = [await maskOf(scope, app), clock.elapsed() + MASK_MS];
    for await (const batch of batches) {
      if (clock.elapsed() > untilMs) [mask, untilMs] = [await maskOf(scope, app), clock.elapsed() + MASK_MS];
      yield { ...batch, lines: batch.lines.map(mask) };
    }
  };

  const reads: LogReads = {
    appOf: async (scope, deploymentId) => (await appsOfDeployment(db, scope, deploymentId))[0] ?? null,
    tail: async (scope, app, { tail, since = null, signal }) => {
      const source = app === null ? "not_installed" : await sourceOf(scope, app);
      if (app === null || source === "not_installed") return NOTHING;
      if (source === "device_offline") throw new AppError("DEVICE_OFFLINE", { details: { deviceId: app.deviceId } });
      const found = await readTail({ ...wiring, ...settings, orders, routes }, scope, app, { tail, since, signal });
      return { ...found, lines: found.lines.map(await maskOf(scope, app)) };
    },
    follow: async function* (scope, app, signal) {
      if (app === null) return yield { lines: [], skipped: 0, notice: "not_installed" };
      const place = wiring.takeStream(scope);
      try {
        yield* masked(scope, app, follows.watch(scope, app, signal));
      } finally {
        place();
      }
    },
  };
  const existing = async (scope: SystemScope, appId: string): Promise<LoggedApp> => {
    const app = await findApp(db, scope, appId);
    if (app === null) throw unknownApp(appId);
    return app;
  };
  /** The caller who waits learns that the agent did not take the order. */
  const refusal = async (...[, outcome]: Parameters<OutcomeHandler<(typeof contract.apps.commands)[Names]>>): Promise<void> => {
    if (outcome.kind === "succeeded") return;
    const code = outcome.kind === "unsuccessful" ? (outcome.code ?? outcome.status) : "INVALID_OUTPUT";
    const { scope, deviceId, payload } = outcome;
    routes.refused({ tenantId: scope.tenantId, deviceId, followId: payload.followId }, code);
  };

  return {
    handlers: {
      logs: async ({ scope, signal }, { appId, ...asked }) => reads.tail(scope, await existing(scope, appId), { ...asked, signal }),
      followLogs: async function* ({ scope, signal }, { appId }) {
        yield* reads.follow(scope, await existing(scope, appId), signal);
      },
    },
    outcomes: { logs: refusal, followLogs: refusal },
    reads,
    job: { name: "apps.renewLogs", everyMs: settings.renewEveryMs, run: follows.tick },
    receive: routes.receive,
  };
};
