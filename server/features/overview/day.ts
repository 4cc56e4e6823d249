// The lines of a day, by its points.
import { DAY_POINTS, type OverviewDay, POINT_SECONDS } from "../../../protocol/index.ts";
import type { PointRow } from "./store.ts";

export const overviewDayOf = (points: readonly PointRow[], until: Date): OverviewDay => {
  const byTime = new Map(points.map((point) => [point.at.getTime(), point]));
  const line = (figureOf: (point: PointRow) => number): (number | null)[] =>
    Array.from({ length: DAY_POINTS }, (_, nth) => {
      const point = byTime.get(until.getTime() - (DAY_POINTS - 1 - nth) * POINT_SECONDS * 1_000);
      return point === undefined ? null : figureOf(point);
    });
  return {
    until: until.toISOString(),
    stepSeconds: POINT_SECONDS,
    online: line(({ online }) => online),
    offline: line(({ offline }) => offline),
    appsInError: line(({ apps_in_error }) => apps_in_error),
    commands: line(({ commands }) => commands),
    freshBackups: line(({ fresh_backups }) => fresh_backups),
    lateBackups: line(({ late_backups }) => late_backups),
  };
};
