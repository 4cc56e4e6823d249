// The app that the kit orders, and what it asks it.
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import type { z } from "zod";
import { ReportedApp } from "../../records/apps/app-spec.ts";
import type { KitOrder } from "../gateway/order-book.ts";
import type { Stage } from "../stage.ts";

export const APP_MS = 25_000;
export const APP_TOKEN = "kit-app-secret-token";

export interface WantedApp {
  readonly appId?: string;
  readonly revision?: number;
  readonly state?: string;
  readonly keepVolumes?: boolean;
  readonly title?: string;
  readonly broken?: boolean;
  readonly port: number;
  /** Replaces fields of the spec. */
  readonly spec?: Readonly<Record<string, unknown>>;
}

export const APP_ID = "app_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
export const OTHER_APP_ID = "app_01J9ZQ3E8W6Y2V7K4M5N6P7Q8S";

/** A port of this machine that nobody has at the moment. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

/** An app as it should be. */
export const wanted = ({ appId = APP_ID, revision = 1, state = "running", keepVolumes = true, title = "one", broken = false, port, spec = {} }: WantedApp) => ({
  appId,
  deploymentId: "dep_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
  name: "kit",
  template: "kit-app",
  templateVersion: "1.0.0",
  revision,
  state,
  keepVolumes,
  spec: {
    kind: "process",
    program: "kit-app",
    environment: { TITLE: { config: "title" }, BROKEN: { config: "broken" }, TOKEN: { secret: "TOKEN" } },
    ports: [{ name: "http", protocol: "tcp", config: "port", variable: "PORT" }],
    volumes: [{ name: "data", variable: "DATA_DIR" }],
    health: { http: { port: "http", path: "/health" }, intervalSeconds: 1, timeoutSeconds: 2, retries: 3, startSeconds: 8 },
    stopSeconds: 3,
    ...spec,
  },
  config: { title, broken: broken ? "yes" : "no", port },
  secretsVersion: 1,
});

export type SeenApp = z.infer<typeof ReportedApp>;

/** The text of an answer of the app; null if it does not answer. */
export const askApp = (port: number, path: string): Promise<string | null> =>
  new Promise((resolve) => {
    const call = request({ host: "127.0.0.1", port, path, timeout: 2_000, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(response.statusCode === 200 ? text : null)).on("error", () => resolve(null));
    });
    call
      .on("error", () => resolve(null))
      .on("timeout", () => call.destroy())
      .end();
  });

/** Waits until the app answers, as after a crash. */
export const untilAppAnswers = async (stage: Stage, rule: string, port: number): Promise<void> => {
  let answers = false;
  const ask = async (): Promise<void> => {
    answers = (await askApp(port, "/health")) !== null;
  };
  await stage.due(
    rule,
    `an answer of the app at port ${port}`,
    () => {
      void ask();
      return answers;
    },
    APP_MS,
  );
};

/** Orders a change under the next version of the desired state, in which the app then stands. */
export const orderApp = (stage: Stage, type: string, app: ReturnType<typeof wanted>): KitOrder => {
  const { desired } = stage.gateway.state;
  desired.version += 1;
  desired.apps = [...desired.apps.filter((each) => (each as { appId: string }).appId !== app.appId), app];
  stage.gateway.state.secrets = { ...stage.gateway.state.secrets, [app.appId]: { TOKEN: APP_TOKEN } };
  return stage.queue(type, { app, desiredVersion: desired.version }, { lane: `app:${app.appId}` });
};

/** The app in the output of a final ack. */
export const appIn = async (
  stage: Stage,
  order: KitOrder,
  rule: string,
): Promise<{ readonly status: string; readonly code: string | undefined; readonly app: SeenApp }> => {
  const ack = await stage.final(order, rule, APP_MS);
  const parsed = ReportedApp.safeParse((ack.output as { app?: unknown } | undefined)?.app);
  stage.expect(parsed.success, rule, "the app as it is, in the output", ack);
  if (!parsed.success) throw new Error("unreachable");
  return { status: ack.status, code: ack.code, app: parsed.data };
};

/** An app in the latest report. */
export const reported = (stage: Stage, rule: string, what: string, fits: (app: SeenApp) => boolean): Promise<SeenApp> =>
  stage.due(rule, what, () => stage.gateway.state.reports.at(-1)?.apps.find(fits), APP_MS);

export const deployed = async (stage: Stage, app: ReturnType<typeof wanted>): Promise<void> => {
  const { status, app: seen } = await appIn(stage, orderApp(stage, "app.deploy", app), "A4.1");
  stage.expect(status === "succeeded" && seen.state === "running" && seen.health === "healthy", "A4.1", "succeeded, with the app running and healthy", {
    status,
    seen,
  });
};
