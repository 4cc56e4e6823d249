// The condition of a rule, in words.
import type { AlertRule } from "@mooring/client";
import { ALERT_METRIC_WORDS } from "../../../../protocol/kit/words.ts";
import { numbers } from "../../ui/count.ts";
import { secondsText } from "../../ui/fields/seconds-field.tsx";

export type Metric = AlertRule["metric"];

export const METRICS = { ...ALERT_METRIC_WORDS, event: "Events of a type" } as const satisfies Record<Metric, string>;

/** The metrics whose past is stored. */
const TRIABLE = ["device.offline_seconds", "device.cpu", "device.memory", "device.disk"] as const;
export type Triable = (typeof TRIABLE)[number];
export const triable = (metric: Metric): Triable | undefined => TRIABLE.find((each) => each === metric);
export const countsInWindow = (metric: Metric): boolean => metric === "event" || metric === "command.failure_rate";

export const OPERATORS = { gt: ">", gte: "≥", lt: "<", lte: "≤", eq: "=", ne: "≠" } as const satisfies Record<AlertRule["operator"], string>;

/** Such as `CPU in percent > 90 for 5 min`. */
export const conditionText = ({ metric, eventType, operator, threshold, forSeconds, windowSeconds }: AlertRule): string =>
  [
    metric === "event" ? (eventType ?? "") : METRICS[metric],
    OPERATORS[operator],
    numbers.format(threshold),
    ...(countsInWindow(metric) ? [`within ${secondsText(windowSeconds)}`] : []),
    ...(forSeconds === 0 ? [] : [`for ${secondsText(forSeconds)}`]),
  ].join(" ");
