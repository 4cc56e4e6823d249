// Asks an app over HTTP whether it is healthy.
import { get } from "node:http";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { noop } from "../../agent/index.ts";
import { portsOf } from "../host.ts";

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
