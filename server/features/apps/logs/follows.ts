// The logs that viewers of this node follow: one order to the agent for all viewers of an app, renewed as long as there are any. The agent stops when
// nobody takes its chunks; it sends one now and then, also without lines, and is ordered anew when it has been silent.
import type { LogBatch, LogNotice } from "../../../../protocol/index.ts";
import type { Clock } from "../../../core/clock.ts";
import { isAppError } from "../../../core/errors.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { createLineBuffer, type LineBounds, type LineBuffer } from "./line-buffer.ts";
import { type LoggedApp, type LogOrders, newFollowId } from "./orders.ts";
import type { LogAnswer, LogRoutes } from "./routes.ts";

/** What the node finds out about the app before it asks the agent. */
export type LogSource = "ready" | "not_installed" | "device_offline";

export interface FollowsDeps {
  readonly clock: Pick<Clock, "elapsed">;
  readonly orders: LogOrders;
  readonly routes: Pick<LogRoutes, "listen">;
  readonly sourceOf: (scope: SystemScope, app: LoggedApp) => Promise<LogSource>;
  /** False while lines that reach another node get lost. */
  readonly nodesReach: () => boolean;
  readonly bounds: LineBounds;
  readonly onError: (error: unknown) => void;
}

/** An agent that is silent for longer has restarted, or is gone: it sends at least every 15 s. */
const SILENT_MS = 40_000;
const LEASE_SECONDS = 600;
const RENEW_BEFORE_MS = 60_000;
/** After a refusal. */
const AGAIN_MS = 30_000;
/** An order without an answer is given up after it. */
const ANSWER_MS = 45_000;

interface Follow {
  readonly scope: SystemScope;
  readonly app: LoggedApp;
  readonly viewers: Set<LineBuffer>;
  readonly leave: () => void;
  followId: string;
  stop: () => void;
  notice: LogNotice | null;
  /** The number of the last chunk. */
  last: number;
  lineAt: string | null;
  heardAtMs: number;
  untilMs: number;
  nextAtMs: number;
  busy: boolean;
}

export interface Follows {
  /** What comes from now on; ends when the signal aborts or the app is not there. */
  watch(scope: SystemScope, app: LoggedApp, signal: AbortSignal): AsyncGenerator<LogBatch>;
  /** Renews what is about to end. */
  tick(): Promise<void>;
  readonly size: number;
}

export const createFollows = ({ clock, orders, routes, sourceOf, nodesReach, bounds, onError }: FollowsDeps): Follows => {
  const follows = new Map<string, Follow>();
  const keyOf = ({ tenantId }: SystemScope, { appId }: LoggedApp): string => `${tenantId} ${appId}`;

  const notify = (follow: Follow, notice: LogNotice | null): void => {
    follow.notice = notice;
    for (const viewer of follow.viewers) viewer.notice(notice);
  };
  const endAll = (follow: Follow): void => {
    for (const viewer of follow.viewers) viewer.end();
  };
  const onAnswer = (follow: Follow, answer: LogAnswer): void => {
    if (answer.kind === "refused") {
      follow.nextAtMs = clock.elapsed() + AGAIN_MS;
      notify(follow, "refused");
      return;
    }
    const { n, lines, skipped, done } = answer.chunk;
    if (n <= follow.last) return;
    follow.last = n;
    follow.heardAtMs = clock.elapsed();
    follow.lineAt = lines.at(-1)?.at ?? follow.lineAt;
    notify(follow, null);
    for (const viewer of follow.viewers) viewer.push(lines, skipped);
    if (done) follow.heardAtMs = Number.NEGATIVE_INFINITY;
  };

  /** Under a new id if the agent has forgotten the old one: it counts its chunks from 1 again. */
  const listen = async (follow: Follow, isNew: boolean): Promise<void> => {
    if (!isNew) return;
    follow.stop();
    [follow.followId, follow.last] = [newFollowId(), 0];
    const { followId, scope, app } = follow;
    const stop = await routes.listen({ tenantId: scope.tenantId, deviceId: app.deviceId, followId }, (answer) => {
      if (follow.followId === followId) onAnswer(follow, answer);
    });
    if (follow.viewers.size > 0) follow.stop = stop;
    else stop();
  };
  const order = async (follow: Follow, nowMs: number): Promise<void> => {
    const isSilent = nowMs - follow.heardAtMs > SILENT_MS;
    await listen(follow, isSilent);
    if (follow.viewers.size === 0) return;
    follow.nextAtMs = nowMs + ANSWER_MS;
    follow.untilMs = nowMs + LEASE_SECONDS * 1_000;
    await orders.follow(follow.scope, follow.app, { followId: follow.followId, seconds: LEASE_SECONDS, since: isSilent ? follow.lineAt : null });
  };
  const isDue = ({ heardAtMs, untilMs, nextAtMs }: Follow, nowMs: number): boolean =>
    nowMs >= nextAtMs && (nowMs - heardAtMs > SILENT_MS || untilMs - nowMs < RENEW_BEFORE_MS);
  const renew = async (follow: Follow): Promise<void> => {
    const nowMs = clock.elapsed();
    if (follow.busy || !isDue(follow, nowMs)) return;
    follow.busy = true;
    try {
      const source = await sourceOf(follow.scope, follow.app);
      if (source !== "ready") notify(follow, source);
      if (source === "not_installed") return endAll(follow);
      if (source !== "ready") return;
      if (!nodesReach()) notify(follow, "nodes_apart");
      else if (follow.notice === "device_offline") notify(follow, null);
      await order(follow, nowMs);
    } finally {
      follow.busy = false;
    }
  };
  /** Some refusals pass by themselves. */
  const tryRenew = (follow: Follow): Promise<void> =>
    renew(follow).catch((error: unknown) => {
      if (isAppError(error) && error.status < 500) follow.nextAtMs = clock.elapsed() + AGAIN_MS;
      else onError(error);
    });

  const newFollow = (scope: SystemScope, app: LoggedApp): Follow => ({
    scope: { tenantId: scope.tenantId },
    app: { appId: app.appId, deviceId: app.deviceId },
    viewers: new Set(),
    leave: orders.takePlace(scope, app.deviceId),
    followId: "",
    stop: () => undefined,
    notice: null,
    last: 0,
    lineAt: null,
    heardAtMs: Number.NEGATIVE_INFINITY,
    untilMs: Number.NEGATIVE_INFINITY,
    nextAtMs: Number.NEGATIVE_INFINITY,
    busy: false,
  });
  const drop = (key: string, follow: Follow, viewer: LineBuffer): void => {
    follow.viewers.delete(viewer);
    if (follow.viewers.size > 0) return;
    follows.delete(key);
    follow.stop();
    follow.leave();
  };

  return {
    watch: async function* (scope, app, signal) {
      const key = keyOf(scope, app);
      const follow = follows.get(key) ?? newFollow(scope, app);
      follows.set(key, follow);
      const viewer = createLineBuffer(bounds);
      follow.viewers.add(viewer);
      const end = (): void => viewer.end();
      signal.addEventListener("abort", end, { once: true });
      if (signal.aborted) end();
      try {
        // The first viewer hears of a refusal as an answer to its call.
        if (follow.viewers.size === 1) await renew(follow);
        yield { lines: [], skipped: 0, notice: follow.notice };
        for await (const batch of viewer) {
          if (signal.aborted) return;
          yield batch;
        }
      } finally {
        signal.removeEventListener("abort", end);
        drop(key, follow, viewer);
      }
    },
    tick: async () => {
      await Promise.all([...follows.values()].map(tryRenew));
    },
    get size() {
      return follows.size;
    },
  };
};
