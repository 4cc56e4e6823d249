// What an app uses and how it answers: now, and over the last day.
import type { AppDetails, AppMetrics } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { inWords } from "../../../../protocol/kit/words.ts";
import { api } from "../../api/client.ts";
import { FailureOf } from "../../ui/failure.tsx";
import { Figure, Figures, Spark } from "../../ui/figures.tsx";
import { toneOf } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { useDevice } from "./state.ts";
import { text } from "./text.ts";

const NAMES = ["responseMs", "cpuPercent", "memoryBytes"] as const;
type Name = (typeof NAMES)[number];

const numbers = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const MEGABYTE = 1_048_576;
const SHOWN: Readonly<Record<Name, (value: number) => string>> = {
  responseMs: (value) => `${numbers.format(value)} ms`,
  cpuPercent: (value) => `${numbers.format(value)} %`,
  memoryBytes: (value) => `${numbers.format(value / MEGABYTE)} MB`,
};

const METRICS_MS = 60_000;

/** One value for each bucket of the day, null where nothing was reported. */
const valuesOf = ({ buckets, bucketSeconds }: AppMetrics, name: Name): readonly (number | null)[] => {
  const known = new Map(buckets.map((bucket) => [Date.parse(bucket.timestamp) / 1_000, bucket[name]?.avg]));
  const last = Math.max(0, ...known.keys());
  const count = Math.ceil(86_400 / bucketSeconds);
  return Array.from({ length: count }, (_, at) => known.get(last - (count - 1 - at) * bucketSeconds) ?? null);
};

export const AppFigures = ({ app }: { readonly app: AppDetails }) => {
  const { appId, status, reported, reportedAt } = app;
  const { isAway } = useDevice(app);
  const metrics = useQuery({ ...api.apps.metrics.queryOptions({ appId }), refetchInterval: METRICS_MS, enabled: reported !== null });
  if (reported === null) return null;
  const runs = status === "running";
  const isPast = isAway || !runs;
  const figures = (
    <Figures label={text.figures} dimmed={isPast}>
      {NAMES.map((name) => {
        const value = reported[name];
        const values = metrics.data === undefined ? [] : valuesOf(metrics.data, name);
        const isHealth = name === "responseMs";
        // An app that nobody asks by HTTP has a health all the same.
        const shown = isHealth ? inWords(reported.health) : value == null ? "–" : SHOWN[name](value);
        return (
          <Figure
            key={name}
            name={text.uses[name]}
            value={runs ? shown : "–"}
            beside={
              isPast ? (
                <>
                  {text.reported} <Ago at={reportedAt} />
                </>
              ) : isHealth && value != null ? (
                text.within(SHOWN[name](value))
              ) : null
            }
          >
            {values.filter((each) => each !== null).length > 1 ? (
              <Spark label={text.lastDay(text.uses[name])} values={values} {...(isHealth ? { tone: toneOf(reported.health) } : {})} />
            ) : null}
          </Figure>
        );
      })}
      <Figure name={text.restarts} value={numbers.format(reported.restarts)} beside={text.byAgent} />
    </Figures>
  );
  return (
    <>
      {figures}
      <FailureOf read={metrics} />
    </>
  );
};
