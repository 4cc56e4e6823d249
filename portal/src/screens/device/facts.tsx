// What is known of the device, above its tabs.
import type { Device } from "@mooring/client";
import { Spark } from "../../ui/charts/spark.tsx";
import { Facts } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import css from "./device.module.css";
import { currentOf, FIGURES, percentText, spanOf, timesOf, useHistory, valuesOf } from "./metrics.ts";
import { text } from "./text.ts";

const Maintenance = ({ until }: { readonly until: string | null }) =>
  until === null ? (
    text.maintenance
  ) : (
    <>
      {text.maintenance}, {text.until} <Ago at={until} />
    </>
  );

export const DeviceFacts = ({ device }: { readonly device: Device }) => {
  const span = spanOf(device);
  const day = useHistory(device, span).data;
  const { connection, status, lastSeen, platform, arch, osVersion, agentVersion, hostname, offlineReason, maintenance, repairUntil, tags } = device;
  const times = day === undefined ? [] : timesOf(day, span);
  const figures = FIGURES.flatMap((figure) => {
    const current = currentOf(device, figure);
    const reported = current !== undefined || day?.buckets.some((bucket) => bucket[figure] !== undefined) === true;
    const name = text.metric[figure];
    return reported
      ? [
          [
            name,
            <span key={figure} className={css["figure"]}>
              {day === undefined ? null : <Spark label={text.lastOf(name, span)} values={valuesOf(day, times, figure)} />}
              {percentText(current)}
            </span>,
          ] as const,
        ]
      : [];
  });
  return (
    <Facts
      of={{
        Link: text.links[connection.connectivity],
        Node: connection.nodeId === undefined ? null : <span className="mono">{connection.nodeId}</span>,
        Connected: connection.since === undefined ? null : <Ago at={connection.since} />,
        "Last seen": <Ago at={lastSeen} />,
        "Offline because": status === "offline" && offlineReason !== undefined ? text.offlineReason(offlineReason) : null,
        Maintenance: maintenance?.enabled === true ? <Maintenance until={maintenance.until} /> : null,
        [text.repairUntil]: repairUntil === undefined ? null : <Ago at={repairUntil} />,
        Hostname: hostname,
        System: [platform, arch, osVersion].filter(Boolean).join(" / "),
        Agent: agentVersion,
        Tags: tags.join(", "),
        ...Object.fromEntries(figures),
      }}
    />
  );
};
