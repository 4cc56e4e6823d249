// Desired apps for the tests of hosts: the fixture program with a page, a volume and a secret.
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";

let numbered = 0;
export const newAppId = (): DesiredApp["appId"] => {
  numbered += 1;
  return `app_${String(numbered).padStart(26, "0")}`;
};

type Spec = DesiredApp["spec"];
export type Differences = Partial<Omit<DesiredApp, "spec">> & { readonly spec?: Partial<Extract<Spec, { kind: "process" }>> };

const HEALTH: Spec["health"] = { http: { port: "http", path: "/health" }, intervalSeconds: 1, timeoutSeconds: 2, retries: 1, startSeconds: 10 };

export const desiredApp = (port: number, { spec, ...differences }: Differences = {}): DesiredApp => ({
  appId: newAppId(),
  deploymentId: null,
  name: "Test",
  template: "fixture",
  templateVersion: "1.0.0",
  revision: 1,
  state: "running",
  keepVolumes: false,
  config: { port, mode: "serve" },
  secretsVersion: 1,
  ...differences,
  spec: {
    kind: "process",
    program: "fixture",
    environment: { MODE: { config: "mode" }, LINES: { config: "lines" }, SECRET: { secret: "SECRET" }, FIXED: { value: "as it is" } },
    ports: [{ name: "http", protocol: "tcp", config: "port", variable: "PORT" }],
    volumes: [{ name: "files", variable: "DATA_DIR" }],
    health: structuredClone(HEALTH),
    stopSeconds: 2,
    ...spec,
  },
});

/** The next revision of an app, in another mode. */
export const inMode = (app: DesiredApp, mode: string, differences: Partial<DesiredApp> = {}): DesiredApp => ({
  ...app,
  revision: app.revision + 1,
  config: { ...app.config, mode },
  ...differences,
});
