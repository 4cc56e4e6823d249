// CPU, memory and disk over the last day, or over the last hour of a new device.
import type { DeviceMetrics as Day, Device } from "@mooring/client";
import { useMemo } from "react";
import { Chart } from "../../ui/charts/chart.tsx";
import type { ChartLine } from "../../ui/charts/plot.tsx";
import { Empty, Loaded, Panel } from "../../ui/parts.tsx";
import type { Tone } from "../../ui/status.tsx";
import { FIGURES, type Figure, percentText, type Span, spanOf, timesOf, useHistory, valuesOf } from "./metrics.ts";
import { text } from "./text.ts";

const TONES: Readonly<Record<Figure, Tone>> = { cpu: "busy", memory: "good", disk: "warn" };
const HEIGHT = 260;

const Lines = ({ day, span }: { readonly day: Day; readonly span: Span }) => {
  const { times, lines } = useMemo(() => {
    const all = timesOf(day, span);
    return { times: all, lines: FIGURES.map((figure): ChartLine => ({ label: text.metric[figure], tone: TONES[figure], values: valuesOf(day, all, figure) })) };
  }, [day, span]);
  return <Chart label={text.metricsChart(span)} times={times} lines={lines} height={HEIGHT} max={100} format={percentText} />;
};

export const DeviceMetrics = ({ device }: { readonly device: Device }) => {
  const span = spanOf(device);
  return (
    <Panel title={text.metricsChart(span)}>
      <Loaded read={useHistory(device, span)} rows={8}>
        {(day) => (day.buckets.some(({ count }) => count > 0) ? <Lines day={day} span={span} /> : <Empty>{text.noMetrics}</Empty>)}
      </Loaded>
    </Panel>
  );
};
