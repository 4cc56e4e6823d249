// Asks an app over HTTP whether it is healthy, once or until it is.
import { get } from "node:http";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { noop, pause } from "../../agent/index.ts";
import { HostClosed, HostFailure, portsOf } from "../host.ts";
import type { AppContext } from "./settings.ts";

/** Null if it is healthy, else what it answered. An app without a check is healthy while it runs. `onAnswer` gets how long a healthy answer took. */
export const askHealth = ({ spec, config, ...rest }: DesiredApp, closing: AbortSignal, onAnswer: (tookMs: number) => void = noop): Promise<string | null> => {
  const { http, timeoutSeconds } = spec.health;
  const port = http === undefined ? undefined : portsOf({ ...rest, spec, config })[http.port];
  if (http === undefined || port === undefined) return Promise.resolve(null);
  return new Promise((resolve) => {
    const askedMs = performance.now();
    // A connection of its own for each question, and nothing of the answer but its status.
    const request = get(
      { host: "127.0.0.1", port, path: http.path, agent: false, signal: AbortSignal.timeout(timeoutSeconds * 1_000) },
      ({ statusCode = 0 }) => {
        request.destroy();
        const isHealthy = statusCode >= 200 && statusCode < 400;
        if (isHealthy) onAnswer(performance.now() - askedMs);
        resolve(isHealthy ? null : `GET ${http.path} answered ${statusCode}`);
      },
    );
    const end = (): void => void request.destroy(new Error("the agent ends"));
    if (closing.aborted) end();
    closing.addEventListener("abort", end, { once: true });
    request.on("error", (error) => resolve(`GET ${http.path} failed: ${error.message}`));
    request.on("close", () => closing.removeEventListener("abort", end));
  });
};

export interface StartWatch {
  readonly context: Pick<AppContext, "time" | "closing">;
  readonly lookMs: number;
  /** An app without a check has started if it lives this long. */
  readonly settleMs: number;
  /** Null while the app runs, else how it ended. */
  ended(): Promise<string | null>;
  lastLines(): Promise<readonly string[]>;
}

/** Resolves once the app that has just been started is healthy. Throws HostFailure if it ends, or is not healthy within its `startSeconds`. */
export const untilHealthy = async (app: DesiredApp, { context: { time, closing }, lookMs, settleMs, ended, lastLines }: StartWatch): Promise<void> => {
  const { http, startSeconds } = app.spec.health;
  const start = time.elapsedMs();
  for (;;) {
    const answer = await askHealth(app, closing);
    if (closing.aborted) throw new HostClosed();
    const lasted = time.elapsedMs() - start;
    const ending = await ended();
    if (ending !== null) throw new HostFailure({ stage: "starting", reason: "EXITED", message: ending, lines: await lastLines() });
    if (answer === null && (http !== undefined || lasted >= Math.min(settleMs, startSeconds * 1_000))) return;
    if (lasted >= startSeconds * 1_000) {
      const message = `not healthy within ${startSeconds} s: ${answer}`;
      throw new HostFailure({ stage: "health", reason: "HEALTH_CHECK_FAILED", message, lines: await lastLines() });
    }
    await pause(time, lookMs, closing);
  }
};
