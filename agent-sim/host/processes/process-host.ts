// The host that runs apps as processes of this machine: one folder, one lane and one supervisor for each app.
import { mkdirSync, readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { AppId } from "../../../protocol/index.ts";
import { noop, openOwnFiles, pause } from "../../agent/index.ts";
import type { HostData } from "../app-data.ts";
import { checkAppId, type DataHost, type Host, HostClosed, refuse } from "../host.ts";
import { createTurns } from "../turns.ts";
import { createFolderVolumes } from "../volumes.ts";
import { createAppProcess } from "./app-process.ts";
import { systemCgroups } from "./cgroups.ts";
import { systemDisk } from "./disk.ts";
import { PROGRAMS, SHIM } from "./launch.ts";
import { createProcessApp, type ProcessApp } from "./process-app.ts";
import { type AppContext, type ProcessHostOptions, SUPERVISION } from "./settings.ts";

/** A program that outlives SIGKILL keeps nobody waiting. */
const CLOSED_WITHIN_MS = 5_000;

/** Opens the host and adopts the apps that it finds. Changes that were interrupted go on at once; `apply` waits for them. */
export const openProcessHost = ({ folder, supervision, programs, onChange = noop, onStep = noop, ...given }: ProcessHostOptions): DataHost => {
  mkdirSync(join(folder, "apps"), { recursive: true, mode: 0o700 });
  const own = openOwnFiles(folder);
  const closing = new AbortController();
  const context: AppContext = {
    disk: systemDisk,
    cgroups: systemCgroups,
    createProcess: createAppProcess,
    ...given,
    programs: programs ?? join(own, PROGRAMS),
    shim: join(own, SHIM),
    onChange,
    closing: closing.signal,
    onStep: (step) => {
      if (closing.signal.aborted) throw new HostClosed();
      onStep(step);
    },
    // The working folders of the processes are compared with it.
    apps: realpathSync(join(folder, "apps")),
    supervision: { ...SUPERVISION, ...supervision },
    portsOfOthers: (appId) => new Map([...apps].flatMap(([id, app]) => (id === appId ? [] : app.ports().map((port) => [port, id] as const)))),
  };
  const apps = new Map<string, ProcessApp>();
  const inTurn = createTurns();
  const appOf = (given: string): ProcessApp => {
    const app = apps.get(given) ?? createProcessApp(context, checkAppId(given));
    apps.set(given, app);
    return app;
  };
  const known = (): readonly ProcessApp[] => [...apps.values()].filter(({ exists }) => exists);
  const present = (appId: string): ProcessApp => known().find((app) => app === apps.get(appId)) ?? refuse("UNKNOWN_APP", "this app is not on the device");
  const change = (desired: Parameters<Host["apply"]>[0], anew: boolean) =>
    inTurn(desired.appId, async () => {
      const app = appOf(desired.appId);
      try {
        return await app.apply(desired, anew);
      } finally {
        if (!app.exists) apps.delete(desired.appId);
      }
    });

  const existing = (): readonly string[] => [...apps].flatMap(([appId, { exists }]) => (exists ? [appId] : []));
  const volumes = given.createVolumes?.(existing) ?? createFolderVolumes(context.apps, (appId) => existing().includes(appId));

  for (const name of readdirSync(context.apps)) {
    if (!AppId.safeParse(name).success) continue;
    const app = appOf(name);
    const recovered = inTurn(name, async () => {
      await app.recover();
      if (!app.exists) apps.delete(name);
    });
    recovered.catch((error: unknown) => {
      if (!(error instanceof HostClosed)) throw error;
    });
  }
  const data: HostData = {
    closing: closing.signal,
    places: async (app) => appOf(app.appId).places(app),
    atRest: (app, rest, read) => inTurn(app.appId, () => present(app.appId).atRest(rest, read)),
    swap: (swap) =>
      inTurn(swap.app.appId, async () => {
        const app = appOf(swap.app.appId);
        try {
          await app.swap(swap);
        } finally {
          if (!app.exists) apps.delete(swap.app.appId);
        }
      }),
    restored: (appId) => apps.get(appId)?.restored ?? null,
    volumes: () => volumes.list(),
    removeVolume: (name) => volumes.remove(name),
  };
  return {
    data,
    apply: (desired) => change(desired, false),
    restart: (desired) => change(desired, true),
    revision: (appId) => known().find((app) => app === apps.get(appId))?.current ?? null,
    report: () => known().map((app) => app.report()),
    tail: async (appId, lines) => present(appId).tail(lines),
    follow: (appId, signal) => present(appId).follow(signal),
    close: async () => {
      closing.abort();
      const closed = Promise.all([...apps.values()].map((app) => app.close())).then(() => inTurn.whenIdle());
      await Promise.race([closed, pause(given.time, CLOSED_WITHIN_MS)]);
    },
  };
};
