// What reads show of an app beside its record: who made it, its picture, where it answers and since when it runs.
import type { App, AppAddress, AppDetails, Device, DeviceId } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { withActors } from "../../core/people/actors.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { AppCatalogue } from "./catalogue/load.ts";
import { type AppRow, toApp } from "./record.ts";

export interface AppMachine {
  readonly hostname: string | null;
  readonly addresses: Device["addresses"];
}
/** The machines among these devices that the caller sees. */
export type FindMachines = (db: Clients, scope: SystemScope, deviceIds: readonly DeviceId[]) => Promise<ReadonlyMap<string, AppMachine>>;

export interface DetailsDeps {
  readonly db: Clients & SqlTx;
  readonly clock: Clock;
  readonly catalogue: AppCatalogue;
  readonly machines: FindMachines;
  /** When the last good backup of each of these apps was made. */
  readonly lastBackups: (db: SqlTx, scope: SystemScope, appIds: readonly string[]) => Promise<ReadonlyMap<string, Date>>;
}

/** The name that a machine gives itself may be any text, and a URL takes no part of it as its own. */
const HOSTNAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/i;
const hostOf = ({ addresses, hostname }: AppMachine): string | null => {
  const [nearest] = addresses;
  if (nearest !== undefined) return nearest.address.includes(":") ? `[${nearest.address}]` : nearest.address;
  return hostname !== null && HOSTNAME.test(hostname) ? hostname : null;
};

type Placed = Pick<AppRow, "config" | "desiredState" | "reported" | "spec" | "status">;
const answers = ({ status, reported }: Placed): boolean | null => {
  if (status !== "running" || reported === null) return false;
  return reported.health === "unknown" ? null : reported.health === "healthy";
};

/** Addresses in the network of the device; pages come first. */
export const lanAddresses = (app: Placed, machine: AppMachine | undefined): readonly AppAddress[] => {
  const host = machine === undefined ? null : hostOf(machine);
  if (host === null || app.desiredState === "removed") return [];
  const page = app.spec.health.http?.port;
  const addresses = app.spec.ports.flatMap(({ name, protocol, config }): readonly AppAddress[] => {
    const port = app.reported?.ports[name] ?? Number(app.config[config]);
    if (!Number.isInteger(port)) return [];
    return name === page
      ? [{ kind: "lan", name, url: `http://${host}:${port}/`, reachable: answers(app) }]
      : [{ kind: "lan", name, url: `${protocol}://${host}:${port}`, reachable: null }];
  });
  return addresses.sort((a, b) => Number(b.name === page) - Number(a.name === page));
};

/** The numbers of its TCP ports on the device; the one with pages comes first. */
export const portsOfApp = ({ spec, config, reported }: Pick<Placed, "config" | "reported" | "spec">): readonly number[] => {
  const page = spec.health.http?.port;
  const tcp = spec.ports.filter(({ protocol }) => protocol === "tcp");
  const sorted = [...tcp].sort((a, b) => Number(b.name === page) - Number(a.name === page));
  return sorted.map(({ name, config: property }) => reported?.ports[name] ?? Number(config[property])).filter(Number.isInteger);
};

/** The agent's word, unless its clock is ahead. */
export const runningSince = ({ status, reported, timeline }: Pick<AppRow, "status" | "reported" | "timeline">, now: Date): string | null => {
  if (status !== "running") return null;
  const started = reported?.startedAt === undefined ? null : new Date(reported.startedAt);
  if (started !== null && started <= now) return started.toISOString();
  return timeline.findLast(({ to }) => to === "running")?.at ?? null;
};

const UNKNOWN: Pick<AppDetails, "icon" | "hue"> = { icon: "box", hue: "blue" };

/** Four reads at most, however many apps there are. */
export const createShowApps = ({ db, clock, catalogue, machines, lastBackups }: DetailsDeps) => {
  /** Also to an older version, where that is what the catalogue has. */
  const updateOf = ({ appType, templateVersion }: App): AppDetails["update"] => {
    const template = catalogue.find(appType)?.template;
    return template === undefined || template.version === templateVersion ? null : { version: template.version, notes: template.upgradeNotes };
  };
  const pictureOf = ({ appType }: App): Pick<AppDetails, "icon" | "hue"> => {
    const template = catalogue.find(appType)?.template ?? UNKNOWN;
    return { icon: template.icon, hue: template.hue };
  };
  return async (scope: SystemScope, rows: readonly AppRow[]): Promise<AppDetails[]> => {
    if (rows.length === 0) return [];
    const now = clock.now();
    const [apps, found] = await Promise.all([withActors(db, scope, rows.map(toApp)), machines(db, scope, [...new Set(rows.map(({ deviceId }) => deviceId))])]);
    const ids = rows.map(({ appId }) => appId);
    const backedUp = permissionsIn(scope).has("backup:read") ? await lastBackups(db, scope, ids) : new Map<string, Date>();
    return apps.map((app, at) => {
      const row = rows[at];
      if (row === undefined) throw new Error("an app got lost");
      return {
        ...app,
        ...pictureOf(app),
        addresses: [...lanAddresses(row, found.get(row.deviceId))],
        runningSince: runningSince(row, now),
        update: updateOf(app),
        lastBackupAt: backedUp.get(app.appId)?.toISOString() ?? null,
      };
    });
  };
};
