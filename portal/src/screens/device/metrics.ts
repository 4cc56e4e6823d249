// What a device reports of itself: now, and in buckets over a day.
import type { Device, DeviceMetrics } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";

export const FIGURES = ["cpu", "memory", "disk"] as const;
export type Figure = (typeof FIGURES)[number];

const DAY_SECONDS = 86_400;
const percent = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
export const percentText = (value: number | undefined): string => (value === undefined ? "–" : `${percent.format(value)} %`);

export const currentOf = ({ metrics }: Pick<Device, "metrics">, figure: Figure): number | undefined => {
  const value = metrics?.[figure];
  return typeof value === "number" ? value : undefined;
};

/** Heartbeats have no event, so this is read again once a minute. */
export const useDay = (deviceId: string) => useQuery({ ...api.devices.metrics.queryOptions({ deviceId, range: "24h" }), refetchInterval: 60_000 });

/** The beginnings of all buckets of the day, in seconds since 1970. */
export const timesOf = ({ bucketSeconds }: DeviceMetrics): readonly number[] => {
  const count = Math.ceil(DAY_SECONDS / bucketSeconds);
  const last = Math.floor(Date.now() / 1_000 / bucketSeconds);
  return Array.from({ length: count }, (_, at) => (last - count + 1 + at) * bucketSeconds);
};

/** One value for each of these times, null where nothing was reported. */
export const valuesOf = ({ buckets }: DeviceMetrics, times: readonly number[], figure: Figure): readonly (number | null)[] => {
  const known = new Map(buckets.map((bucket) => [Date.parse(bucket.timestamp) / 1_000, bucket[figure]?.avg]));
  return times.map((at) => known.get(at) ?? null);
};
