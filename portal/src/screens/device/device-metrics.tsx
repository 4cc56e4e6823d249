// CPU, memory and disk over the last day.
import type { Device, DeviceMetrics as History } from "@mooring/client";
import { Empty, Loaded } from "../../ui/parts.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Ago, exactTime } from "../../ui/time.tsx";
import { FIGURES, percentText, useDay } from "./metrics.ts";
import { text } from "./text.ts";

type Bucket = History["buckets"][number];
const COLUMNS: readonly Column<Bucket>[] = [
  { title: "Time", width: "minmax(120px, 1.5fr)", phone: true, cell: ({ timestamp }) => exactTime(timestamp) },
  { title: "Age", cell: ({ timestamp }) => <Ago at={timestamp} /> },
  ...FIGURES.map((figure) => ({ title: text.metric[figure], phone: true, cell: (bucket: Bucket) => percentText(bucket[figure]?.avg) })),
  { title: "Samples", cell: ({ count }) => count },
];

export const DeviceMetrics = ({ device: { deviceId } }: { readonly device: Device }) => {
  const day = useDay(deviceId);
  return (
    <Loaded read={day} rows={8}>
      {({ buckets }) => {
        const newestFirst = buckets.filter(({ count }) => count > 0).reverse();
        return newestFirst.length === 0 ? (
          <Empty>{text.noMetrics}</Empty>
        ) : (
          <Table label={text.metricsTable} columns={COLUMNS} count={newestFirst.length} row={(index) => newestFirst[index]} id={({ timestamp }) => timestamp} />
        );
      }}
    </Loaded>
  );
};
