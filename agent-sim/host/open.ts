// Opens the host that the command line names, connected with its agent.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Agent, CommandHandlers, Time } from "../agent/index.ts";
import { createComposeHost } from "./compose.ts";
import { createHostHandlers } from "./handlers.ts";
import type { Host, HostOptions } from "./host.ts";
import { createLogHandlers } from "./log-handlers.ts";
import { readText, replaceFile, systemDisk } from "./processes/disk.ts";
import { openProcessHost } from "./processes/process-host.ts";
import { createSimulatedHost } from "./simulated.ts";
import { type AppliedVersion, createStateSync, fetchSecretsBy } from "./state-sync.ts";

export const HOST_KINDS = ["simulated", "process", "compose"] as const;
export type HostKind = (typeof HOST_KINDS)[number];

export interface DeviceHost {
  readonly handlers: CommandHandlers;
  /** Begins to report, at first within this time. */
  start(agent: Pick<Agent, "call">, windowMs?: number): void;
  /** Leaves the apps running. */
  close(): Promise<void>;
}

export interface DeviceHostOptions {
  readonly kind: HostKind;
  /** The folder of the agent's data. */
  readonly folder: string;
  readonly time: Time;
  readonly seed: number;
  /** For the machine's operator. */
  readonly say?: (text: string) => void;
}

const openHost = ({ kind, folder, time, seed }: DeviceHostOptions, shared: HostOptions): Host => {
  if (kind === "process") return openProcessHost({ ...shared, folder, time });
  return kind === "compose" ? createComposeHost({ ...shared, folder, time }) : createSimulatedHost({ ...shared, time, seed });
};

/** Kept in a file, so that a restart does not carry out again what has failed. */
const appliedIn = (folder: string): AppliedVersion => {
  const path = join(folder, "desired-version");
  let version = Number.parseInt(readText(path) ?? "0", 10) || 0;
  return {
    get: () => version,
    raise: (next) => {
      if (next <= version) return;
      version = next;
      try {
        replaceFile(systemDisk, path, String(version));
      } catch (error) {
        // On a full disk, the next start may carry out once more what has been carried out.
        if (!(error instanceof Error && "syscall" in error)) throw error;
      }
    },
  };
};

export const openDeviceHost = (options: DeviceHostOptions): DeviceHost => {
  const { folder, time } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const applied = appliedIn(folder);
  let changed = (): void => undefined;
  let stop = (): void => undefined;
  let provideCall: (call: Agent["call"]) => void = () => undefined;
  const connected = new Promise<Agent["call"]>((resolve) => {
    provideCall = resolve;
  });
  const host = openHost(options, {
    // An app that the host starts anew at once waits until there is an agent.
    secretsOf: async (appId) => fetchSecretsBy(await connected, time)(appId),
    onChange: () => changed(),
  });
  const logs = createLogHandlers({ host, time, call: async (...called) => (await connected)(...called) });
  return {
    handlers: { ...createHostHandlers({ host, onVersion: applied.raise }), ...logs.handlers },
    start: ({ call }, windowMs) => {
      const onIgnored = (appIds: readonly string[]): void =>
        options.say?.(`the gateway does not know these apps, which stay as they are: ${appIds.join(", ")}`);
      const sync = createStateSync({ host, call, time, applied, onIgnored });
      [changed, stop] = [sync.changed, sync.stop];
      provideCall(call);
      sync.start(windowMs);
    },
    close: async () => {
      stop();
      logs.stop();
      await host.close();
    },
  };
};
