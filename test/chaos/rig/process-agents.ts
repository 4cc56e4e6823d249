// Real agents with real processes: each is the agent's own program with the process host, and is killed and started again.

import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { callWithRetry, IssuedIdentity, packageRoot, refusal } from "../../../agent-sim/agent/index.ts";
import { openAppFolder } from "../../../agent-sim/host/processes/app-folder.ts";
import { systemDisk } from "../../../agent-sim/host/processes/disk.ts";
import { membersOf } from "../../../agent-sim/host/processes/proc.ts";
import { type Child, plainEnv, startChild } from "../../kit/net/children.ts";
import { noteChild } from "../../kit/setup/workspace.ts";
import type { OnDevice } from "../check/deploy-checker.ts";
import { headersOf, patience } from "./calls.ts";
import { type Rig, urlOf } from "./rig.ts";

const PROVISION_MS = 60_000;
const PROGRAM = ["dist", "agent-sim", "main.js"];
/** Longer than any run; an agent with a time connects at once. */
const SECONDS = "3600";

export interface ProcessAgent {
  readonly deviceId: string;
  /** Where it keeps its apps. */
  readonly data: string;
  readonly deaths: number;
  start(): void;
  /** kill -9, and a new start. */
  kill(): Promise<void>;
  stop(): Promise<void>;
  /** By its records, and running only if the process lives. */
  onDevice(): OnDevice;
  /** Processes that work in its folder and belong to no app that should run. */
  orphans(): readonly number[];
  /** All processes that work in its folder. */
  processes(): readonly number[];
}

const workingIn = (folder: string): readonly number[] =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      try {
        return pid > 0 && readlinkSync(`/proc/${pid}/cwd`).startsWith(folder) && !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
      } catch {
        return false;
      }
    });

const Provisioned = z.object({ data: z.array(z.unknown()) });

/** Devices with their identities, unparsed, as the agent's program reads them. */
const provisionRaw = async ({ http, credentials }: Rig, count: number): Promise<readonly unknown[]> => {
  const fingerprints = Array.from({ length: count }, () => `chaos-${randomUUID()}`);
  const headers = { ...headersOf(credentials), "idempotency-key": randomUUID() };
  const body = JSON.stringify({ fingerprints, platform: "linux" });
  const answer = await callWithRetry(() => http.call({ method: "POST", path: "/v1/devices/provision", headers, body }), patience(PROVISION_MS));
  if (answer.status !== 201) throw refusal("the gateway refused to provision devices", answer);
  return Provisioned.parse(answer.body).data;
};

export interface ProcessAgentOptions {
  readonly folder: string;
  /** Control: a killed agent leaves a process in each app's folder that neither its records nor the mark in its environment betray. */
  readonly leavesStrays: boolean;
  /** Where the agents look for programs first, such as for a restic that a control has spoilt. */
  readonly programs?: string;
}

const create = async (rig: Rig, identity: unknown, { folder, leavesStrays, programs }: ProcessAgentOptions): Promise<ProcessAgent> => {
  const { device_id: deviceId } = IssuedIdentity.parse(identity);
  const data = join(folder, deviceId);
  const file = join(folder, `${deviceId}.json`);
  await mkdir(join(data, "apps"), { recursive: true });
  await writeFile(file, JSON.stringify(identity), { mode: 0o600 });
  const state: { child: Child | null; deaths: number } = { child: null, deaths: 0 };
  const words = [join(packageRoot(import.meta.dirname), ...PROGRAM), "agent", "--identity", file, "--host", "process", "--data", data];
  const apps = () => readdirSync(join(data, "apps")).map((appId) => ({ appId, folder: openAppFolder(join(data, "apps"), appId, systemDisk) }));
  const living = (app: ReturnType<typeof apps>[number]): readonly number[] => {
    const leader = app.folder.readProcess();
    return leader === null ? [] : membersOf(leader, app.folder.path);
  };
  const env = { ...plainEnv(), ...(programs === undefined ? {} : { PATH: `${programs}:${process.env["PATH"]}` }) };
  const start = (): void => {
    state.child = startChild({ command: process.execPath, words: [...words, "--url", urlOf(rig.agentProxy), "--seconds", SECONDS], env });
  };
  return {
    deviceId,
    data,
    get deaths() {
      return state.deaths;
    },
    start,
    kill: async () => {
      await state.child?.kill();
      state.deaths += 1;
      if (leavesStrays) for (const app of apps()) startChild({ command: "sleep", words: [SECONDS], env: { PATH: process.env["PATH"] }, cwd: app.folder.path });
      start();
    },
    stop: async () => void (await state.child?.stop()),
    onDevice: () =>
      new Map(
        apps().flatMap((app) => {
          const record = app.folder.readRecord();
          if (record === null) return [];
          const isUp = record.state !== "running" || living(app).length > 0;
          return [
            [
              app.appId,
              { state: record.change !== null ? ("installing" as const) : isUp ? record.state : ("failed" as const), revision: record.current ?? 0 },
            ] as const,
          ];
        }),
      ),
    orphans: () => {
      const known = new Set(apps().flatMap((app) => (app.folder.readRecord()?.state === "running" ? living(app) : [])));
      return workingIn(data).filter((pid) => !known.has(pid));
    },
    processes: () => {
      const pids = workingIn(data);
      // They outlive the agent, and would outlive a run that is killed.
      for (const pid of pids) noteChild(pid);
      return pids;
    },
  };
};

const end = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
};

/** Starts that many agents; at the end they and all their processes are gone. */
export const withProcessAgents = async <T>(
  rig: Rig,
  count: number,
  { use, ...options }: ProcessAgentOptions & { readonly use: (agents: readonly ProcessAgent[]) => Promise<T> },
): Promise<T> => {
  const agents: ProcessAgent[] = [];
  try {
    for (const identity of await provisionRaw(rig, count)) agents.push(await create(rig, identity, options));
    for (const agent of agents) agent.start();
    return await use(agents);
  } finally {
    await Promise.all(agents.map((agent) => agent.stop()));
    for (const pid of agents.flatMap((agent) => agent.processes())) end(pid);
  }
};
