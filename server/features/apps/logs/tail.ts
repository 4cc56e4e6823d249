// Reads the end of an app's log: orders it from the agent and waits for its chunks.
import type { LogLine, LogTail } from "../../../../protocol/index.ts";
import { AppError } from "../../../core/errors.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { type LoggedApp, type LogOrders, newFollowId } from "./orders.ts";
import type { LogAnswer, LogRoutes } from "./routes.ts";

export interface TailDeps {
  readonly orders: LogOrders;
  readonly routes: Pick<LogRoutes, "listen">;
  readonly tailBudgetMs: number;
  /** False while lines that reach another node get lost. */
  readonly nodesReach: () => boolean;
}

export interface AskedTail {
  readonly tail: number;
  readonly since: string | null;
  readonly signal: AbortSignal;
}

/** The app is not on the device by the agent's word. */
export const UNKNOWN_APP = "UNKNOWN_APP";
const unanswered = (details: object): AppError => new AppError("SERVICE_UNAVAILABLE", { retryAfter: 5, details: { ...details } });

/** Collects the newest lines of all chunks until the last one. */
const createCollector = (most: number) => {
  const lines: LogLine[] = [];
  let last = 0;
  let isCut = false;
  let finish: (tail: LogTail) => void = () => undefined;
  let fail: (error: unknown) => void = () => undefined;
  const done = new Promise<LogTail>((resolve, reject) => {
    [finish, fail] = [resolve, reject];
  });
  const onAnswer = (answer: LogAnswer): void => {
    if (answer.kind === "refused") {
      if (answer.code === UNKNOWN_APP) finish({ lines: [], truncated: false });
      else fail(unanswered({ reason: "agent_refused", code: answer.code }));
      return;
    }
    const { chunk } = answer;
    if (chunk.n <= last) return;
    last = chunk.n;
    lines.push(...chunk.lines);
    const surplus = Math.max(0, lines.length - most);
    lines.splice(0, surplus);
    isCut ||= chunk.truncated || surplus > 0;
    if (chunk.done) finish({ lines, truncated: isCut });
  };
  return { done, onAnswer, fail };
};

export const readTail = async (
  { orders, routes, tailBudgetMs, nodesReach }: TailDeps,
  scope: SystemScope,
  app: LoggedApp,
  { tail, since, signal }: AskedTail,
): Promise<LogTail> => {
  const leave = orders.takePlace(scope, app.deviceId);
  const followId = newFollowId();
  const { done, onAnswer, fail } = createCollector(tail);
  const gone = (): void => fail(unanswered({ reason: "caller_gone" }));
  const timer = setTimeout(() => fail(unanswered({ reason: nodesReach() ? "agent_timeout" : "nodes_apart", seconds: tailBudgetMs / 1_000 })), tailBudgetMs);
  signal.addEventListener("abort", gone, { once: true });
  // It may fail before anybody awaits it.
  done.catch(() => undefined);
  const stop = await routes.listen({ tenantId: scope.tenantId, deviceId: app.deviceId, followId }, onAnswer);
  try {
    await orders.tail(scope, app, { followId, tail, since });
    return await done;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", gone);
    stop();
    leave();
  }
};
