// What a device uses now and used over the last day, and how much of that time it was heard.
import type { Device, DeviceMetrics } from "@mooring/client";
import { bytesText } from "../../ui/bytes.ts";
import { Figures, Figure as OneFigure, Spark } from "../../ui/figures.tsx";
import { Loaded } from "../../ui/parts.tsx";
import type { Tone } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { currentOf, FIGURES, type Figure, heardOf, percentText, type Span, spanOf, timesOf, useHistory, valuesOf } from "./metrics.ts";
import { text } from "./text.ts";

const NEARLY_FULL = 80;
const FULL = 90;
const toneOf = (value: number | undefined): Tone | undefined => (value === undefined || value < NEARLY_FULL ? undefined : value < FULL ? "warn" : "bad");

/** How much there is of it in all. */
const wholeOf = ({ hardware }: Device, figure: Figure, percent: number): string | null => {
  if (figure === "cpu") return hardware?.cpuCores === undefined ? null : text.cores(hardware.cpuCores);
  const bytes = figure === "memory" ? hardware?.memoryBytes : hardware?.diskBytes;
  return bytes === undefined ? null : text.ofBytes(bytesText((bytes * percent) / 100), bytesText(bytes));
};

interface DayProps {
  readonly device: Device;
  readonly day: DeviceMetrics;
  readonly span: Span;
}
const Day = ({ device, day, span }: DayProps) => {
  const { deviceId, status, lastHeartbeatAt, lastSeen, createdAt } = device;
  const link = { to: "/devices/$deviceId", params: { deviceId }, search: { tab: "metrics" } } as const;
  const times = timesOf(day, span);
  const heard = heardOf(day, times, createdAt);
  const isGone = status === "offline";
  const age = isGone ? <Ago at={lastHeartbeatAt ?? lastSeen} /> : null;
  return (
    <>
      {FIGURES.map((figure) => {
        const current = currentOf(device, figure);
        const tone = figure === "disk" ? toneOf(current) : undefined;
        return (
          <OneFigure
            key={figure}
            name={text.metric[figure]}
            value={percentText(current)}
            beside={current === undefined ? text.notReported : (age ?? wholeOf(device, figure, current))}
            link={link}
          >
            <Spark
              label={text.lastOf(text.metric[figure], span)}
              values={valuesOf(day, times, figure)}
              max={100}
              {...(tone === undefined || isGone ? {} : { tone })}
            />
          </OneFigure>
        );
      })}
      <OneFigure
        name={text.reachable}
        value={percentText(heard.percent)}
        beside={heard.percent === undefined ? text.notKnownYet : text.gaps(heard.gaps, span)}
        link={link}
      >
        <Spark label={text.lastOf(text.reachable, span)} values={heard.values} max={1} tone={isGone ? "idle" : "good"} />
      </OneFigure>
    </>
  );
};

export const DeviceFigures = ({ device }: { readonly device: Device }) => {
  const span = spanOf(device);
  return (
    <Figures label={text.figures} dimmed={device.status === "offline"}>
      <Loaded read={useHistory(device, span)}>{(day) => <Day device={device} day={day} span={span} />}</Loaded>
    </Figures>
  );
};
