// Opens a host for a test: the simulated one, or the one with real processes in a folder of its own.
import { mkdtempSync, readdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemTime, type Time } from "../../../agent-sim/agent/index.ts";
import type { DataHost, Host, Secrets } from "../../../agent-sim/host/host.ts";
import type { Disk } from "../../../agent-sim/host/processes/disk.ts";
import { openProcessHost } from "../../../agent-sim/host/processes/process-host.ts";
import type { ProcessHostOptions } from "../../../agent-sim/host/processes/settings.ts";
import { createSimulatedHost } from "../../../agent-sim/host/simulated.ts";
import type { DesiredApp, ReportedApp } from "../../../protocol/records/apps/app-spec.ts";
import { inMode } from "./desired.ts";

export interface Harness {
  readonly host: Host;
  readonly changes: ReportedApp[];
  /** What the gateway has; null: it does not answer. */
  secrets: Secrets | null;
  /** The next revision of an app, which ends as soon as it is started. */
  broken(app: DesiredApp): DesiredApp;
  /** The next revision of an app, which works. */
  mended(app: DesiredApp): DesiredApp;
  /** Removes all apps, whatever is left of them. */
  close(): Promise<void>;
}

export const SECRET = "correct horse battery staple";

const secretsFrom = (harness: { secrets: Secrets | null }) => async (): Promise<Secrets> => {
  if (harness.secrets === null) throw new Error("no answer");
  return harness.secrets;
};

export const openSimulated = (time: Time = systemTime): Harness => {
  const given: { secrets: Secrets | null } = { secrets: { SECRET } };
  const failures = { starting: 0 };
  const changes: ReportedApp[] = [];
  const host = createSimulatedHost({ time, seed: 7, failures, secretsOf: secretsFrom(given), onChange: (app) => changes.push(app) });
  const nextRevision = (app: DesiredApp, share: number): DesiredApp => {
    failures.starting = share;
    return inMode(app, "serve");
  };
  return Object.assign(given, {
    host,
    changes,
    broken: (app: DesiredApp) => nextRevision(app, 1),
    mended: (app: DesiredApp) => nextRevision(app, 0),
    close: () => host.close(),
  });
};

export const PROGRAMS = join(import.meta.dirname, "programs");

export interface ProcessHarness extends Harness {
  readonly host: DataHost;
  readonly folder: string;
  /** Opens the folder again, as a new agent does. The host before it keeps its hands off. */
  reopen(differences?: Partial<ProcessHostOptions>): Promise<DataHost>;
}

/** Removes every app through a host, so that no process outlives its test. */
const removeAll = async (host: Host, folder: string): Promise<void> => {
  const ids = readdirSync(join(folder, "apps")) as DesiredApp["appId"][]; // as: the host has named them
  const removed = { deploymentId: null, name: "", template: "x", templateVersion: "1", revision: 1, state: "removed", keepVolumes: false } as const;
  const spec = { kind: "process", program: "x", environment: {}, ports: [], volumes: [], stopSeconds: 1 } as const;
  const health = { intervalSeconds: 1, timeoutSeconds: 1, retries: 1, startSeconds: 1 };
  for (const appId of ids)
    await host.apply({ ...removed, appId, config: {}, secretsVersion: 0, spec: { ...spec, environment: {}, ports: [], volumes: [], health } });
};

export const openProcesses = (differences: Partial<ProcessHostOptions> = {}): ProcessHarness => {
  const folder = mkdtempSync(join(tmpdir(), "process-host-"));
  const given: { secrets: Secrets | null } = { secrets: { SECRET } };
  const changes: ReportedApp[] = [];
  const open = (more: Partial<ProcessHostOptions>): DataHost =>
    openProcessHost({
      folder,
      time: systemTime,
      programs: PROGRAMS,
      secretsOf: secretsFrom(given),
      onChange: (app) => changes.push(app),
      ...more,
      supervision: { lookMs: 50, backoffMs: 50, maxBackoffMs: 200, ...more.supervision },
    });
  let host = open(differences);
  return {
    changes,
    folder,
    get secrets() {
      return given.secrets;
    },
    set secrets(secrets) {
      given.secrets = secrets;
    },
    get host() {
      return host;
    },
    broken: (app: DesiredApp) => inMode(app, "exit"),
    mended: (app: DesiredApp) => inMode(app, "serve"),
    reopen: async (more: Partial<ProcessHostOptions> = {}) => {
      await host.close();
      host = open(more);
      return host;
    },
    close: async () => {
      await host.close();
      host = open({});
      await removeAll(host, folder);
      await host.close();
      rmSync(folder, { recursive: true });
    },
  };
};

/** A disk that is full after so many writes. */
export const fillableDisk = () => {
  const disk = {
    writesLeft: Number.POSITIVE_INFINITY,
    refused: 0,
    write: (file: number, bytes: Buffer): number => {
      if (disk.writesLeft > 0) {
        disk.writesLeft -= 1;
        return writeSync(file, bytes);
      }
      disk.refused += 1;
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", syscall: "write" });
    },
  } satisfies Disk & Record<string, unknown>;
  return disk;
};
