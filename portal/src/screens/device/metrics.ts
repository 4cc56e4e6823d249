// What a device reports of itself: now, and in buckets over a day, or over an hour while it is new.
import type { Device, DeviceMetrics } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { gatewayNow } from "../../ui/clock.ts";

export const FIGURES = ["cpu", "memory", "disk"] as const;
export type Figure = (typeof FIGURES)[number];

const SECONDS = { "1h": 3_600, "24h": 86_400 } as const;
export type Span = keyof typeof SECONDS;
const percent = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
export const percentText = (value: number | undefined): string => (value === undefined ? "–" : `${percent.format(value)} %`);

export const currentOf = ({ metrics }: Pick<Device, "metrics">, figure: Figure): number | undefined => {
  const value = metrics?.[figure];
  return typeof value === "number" ? value : undefined;
};

/** Most of a new device's day would be empty. */
export const spanOf = ({ createdAt }: Pick<Device, "createdAt">): Span => (gatewayNow() - Date.parse(createdAt) < SECONDS["1h"] * 1_000 ? "1h" : "24h");

/** Heartbeats have no event, so this is read again once a minute. */
export const useHistory = ({ deviceId }: Pick<Device, "deviceId">, range: Span) =>
  useQuery({ ...api.devices.metrics.queryOptions({ deviceId, range }), refetchInterval: 60_000 });

/** The beginnings of all buckets of the span, in seconds since 1970. */
export const timesOf = ({ bucketSeconds }: DeviceMetrics, span: Span): readonly number[] => {
  const count = Math.ceil(SECONDS[span] / bucketSeconds);
  const last = Math.floor(gatewayNow() / 1_000 / bucketSeconds);
  return Array.from({ length: count }, (_, at) => (last - count + 1 + at) * bucketSeconds);
};

/** One value for each of these times, null where nothing was reported. */
export const valuesOf = ({ buckets }: DeviceMetrics, times: readonly number[], figure: Figure): readonly (number | null)[] => {
  const known = new Map(buckets.map((bucket) => [Date.parse(bucket.timestamp) / 1_000, bucket[figure]?.avg]));
  return times.map((at) => known.get(at) ?? null);
};

export interface Heard {
  /** 1 for each step of time in which the device was heard, 0 for the others; null before it was paired. */
  readonly values: readonly (number | null)[];
  readonly percent: number | undefined;
  readonly gaps: number;
}
/** How much of the time the device sent something. What runs now says nothing yet. */
export const heardOf = ({ buckets }: DeviceMetrics, times: readonly number[], createdAt: string): Heard => {
  const known = new Set(buckets.filter(({ count }) => count > 0).map(({ timestamp }) => Date.parse(timestamp) / 1_000));
  const from = Date.parse(createdAt) / 1_000;
  const values = times.slice(0, -1).map((at) => (at < from ? null : known.has(at) ? 1 : 0));
  const told = values.filter((value) => value !== null);
  return {
    values,
    percent: told.length === 0 ? undefined : (100 * told.filter((value) => value === 1).length) / told.length,
    gaps: values.filter((value, at) => value === 0 && values[at - 1] !== 0).length,
  };
};
