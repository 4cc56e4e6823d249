// What a policy would do: when it runs, which apps it backs up, and what its retention does to their backups now.
import type { BackupPolicy, contract, PolicyPreview } from "../../../protocol/index.ts";
import type { Handlers } from "../../core/feature.ts";
import type { PoliciesDeps } from "./policies-deps.ts";
import type { Retaining } from "./retaining.ts";
import { localText, noteOf, readSchedule } from "./schedule.ts";
import type { Targets } from "./targets.ts";

const SHOWN_RUNS = 10;
const SHOWN_APPS = 100;
const SHOWN_BACKUPS = 500;
type H = Handlers<typeof contract.backupPolicies>;
type Given = Parameters<H["preview"]>[1];

export interface PreviewDeps extends Pick<PoliciesDeps, "db" | "clock" | "destinations" | "timezoneOf"> {
  readonly targets: Targets;
  readonly retaining: Retaining;
  readonly rulesOf: (retention: Given["retention"]) => BackupPolicy["retention"];
}

export const createPreview = ({ db, clock, destinations, timezoneOf, targets, retaining, rulesOf }: PreviewDeps): Pick<H, "preview"> => ({
  preview: ({ scope }, { timezone, retention, from, schedule, target, destinationId }) =>
    db.tx(async (tx): Promise<PolicyPreview> => {
      const rules = rulesOf(retention);
      const zone = timezone ?? (await timezoneOf(tx, scope));
      const start = from === undefined ? clock.now() : new Date(from);
      const read = readSchedule(schedule, zone, start);
      if (destinationId !== null) await destinations().hold(tx, scope, destinationId);
      await targets.check(tx, scope, target);
      const found = await targets.appsOf(tx, scope, target);
      const appIds = found.map(({ appId }) => appId);
      const judged = await retaining.judge(tx, scope, appIds, { retention: rules, timezone: zone });
      return {
        runs: read.nextRuns(start, SHOWN_RUNS).map((at) => ({ at: at.toISOString(), local: localText(at, zone), note: noteOf(at, zone) })),
        apps: found.slice(0, SHOWN_APPS).map(({ appId, deviceId, name }) => ({ appId, deviceId, name })),
        totalApps: found.length,
        backups: judged
          .toSorted((a, b) => b.row.createdAt.getTime() - a.row.createdAt.getTime())
          .slice(0, SHOWN_BACKUPS)
          .map(({ row, fate }) => ({
            backupId: row.backupId,
            appId: row.appId,
            createdAt: row.createdAt.toISOString(),
            keep: fate.keep,
            rules: [...fate.rules],
          })),
      };
    }),
});
