// CPU, memory and disk over the last day.
import type { DeviceMetrics as Day, Device } from "@mooring/client";
import { useMemo } from "react";
import { Chart } from "../../ui/charts/chart.tsx";
import type { ChartLine } from "../../ui/charts/plot.ts";
import { Empty, Loaded, Panel } from "../../ui/parts.tsx";
import type { Tone } from "../../ui/status.tsx";
import { FIGURES, type Figure, percentText, timesOf, useDay, valuesOf } from "./metrics.ts";
import { text } from "./text.ts";

const TONES: Readonly<Record<Figure, Tone>> = { cpu: "busy", memory: "good", disk: "warn" };
const HEIGHT = 260;

const Lines = ({ day }: { readonly day: Day }) => {
  const { times, lines } = useMemo(() => {
    const all = timesOf(day);
    return { times: all, lines: FIGURES.map((figure): ChartLine => ({ label: text.metric[figure], tone: TONES[figure], values: valuesOf(day, all, figure) })) };
  }, [day]);
  return <Chart label={text.metricsChart} times={times} lines={lines} height={HEIGHT} max={100} format={percentText} />;
};

export const DeviceMetrics = ({ device: { deviceId } }: { readonly device: Device }) => (
  <Panel title={text.metricsChart}>
    <Loaded read={useDay(deviceId)} rows={8}>
      {(day) => (day.buckets.some(({ count }) => count > 0) ? <Lines day={day} /> : <Empty>{text.noMetrics}</Empty>)}
    </Loaded>
  </Panel>
);
