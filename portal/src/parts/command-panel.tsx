// One command: what it waits for, where its time went, its steps and its result. For every screen that has a list of commands.
import type { TimelineEntry } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api } from "../api/client.ts";
import { useMay } from "../api/session.ts";
import { type Phase, Phases } from "../ui/charts/phases.tsx";
import { Copyable, Facts, Loaded, Panel } from "../ui/parts.tsx";
import { Status } from "../ui/status.tsx";
import { Ago, duration, useNow } from "../ui/time.tsx";
import { type Step, Timeline } from "../ui/timeline.tsx";
import { Value } from "../ui/value.tsx";
import { Blocked, type LinkToCommand } from "./blocked.tsx";
import { CancelButtons } from "./cancel.tsx";
import { type CommandTimeline, isOpen } from "./command.ts";
import { actorText, detailText, text } from "./text.ts";

const phasesOf = (events: readonly TimelineEntry[], now: number): readonly Phase[] => {
  const steps = events.filter(({ from, to }) => from !== to);
  return steps.map(({ at, to }, index) => {
    const next = steps[index + 1];
    if (next === undefined && !isOpen(to)) return { status: to, ms: null };
    const end = next === undefined ? Math.floor(now / 1_000) * 1_000 : Date.parse(next.at);
    return { status: to, ms: Math.max(0, end - Date.parse(at)) };
  });
};

const stepOf = ({ to, at, by, nodeId, attempt, code, detail }: TimelineEntry): Step => ({
  status: to,
  at,
  facts: [actorText(by), nodeId, attempt > 1 ? `attempt ${attempt}` : null, code === null ? null : <code key="code">{code}</code>].filter(
    (fact) => fact !== null,
  ),
  ...(detail === null ? {} : { detail: detailText(detail) }),
});

const Result = ({ command: { ack, status, failureCode, late, outputTruncated } }: { readonly command: CommandTimeline["command"] }) => (
  <>
    {isOpen(status) ? null : (
      <Facts of={{ Status: ack?.status, Code: failureCode === null ? null : <code>{failureCode}</code>, At: ack === null ? null : <Ago at={ack.at} /> }} />
    )}
    {late ? <p>{text.late}</p> : null}
    {outputTruncated ? <p>{text.truncated}</p> : null}
    {ack?.output == null ? <p className="muted">{isOpen(status) ? text.noResult : text.endedWithout}</p> : <Value label={text.result} value={ack.output} />}
  </>
);

const TraceLink = ({ traceparent }: { readonly traceparent: string }) => {
  const may = useMay();
  const [, traceId = ""] = traceparent.split("-");
  return (
    <p>
      {text.trace}{" "}
      {may("trace:read") ? (
        <Link to="/traces/$traceId" params={{ traceId }} className="mono">
          {traceId}
        </Link>
      ) : (
        <Copyable text={traceId} />
      )}
    </p>
  );
};

const Delivery = ({ timeline: { command } }: { readonly timeline: CommandTimeline }) => (
  <div className="stack">
    <Value label="Payload" value={command.payload} />
    <Facts
      of={{
        Lane: <span className="mono">{command.lane}</span>,
        Priority: command.priority,
        Attempts: `${command.attempts} of ${command.maxAttempts}`,
        "Not before": command.notBefore > command.issuedAt ? <Ago at={command.notBefore} /> : null,
        "Deliver until": command.expiresAt === null ? "no limit" : <Ago at={command.expiresAt} />,
        "Time to run": duration(1_000 * command.executionTimeoutSeconds),
        Acknowledgement: command.requiresAck ? "required" : "none",
      }}
    />
  </div>
);

const TickingPhases = ({ events }: { readonly events: readonly TimelineEntry[] }) => <Phases label={text.phases} of={phasesOf(events, useNow())} />;

const Story = ({ timeline, link }: { readonly timeline: CommandTimeline; readonly link: LinkToCommand }) => {
  const { command, events, traceparent } = timeline;
  return (
    <>
      <Blocked timeline={timeline} link={link} />
      {isOpen(command.status) ? <TickingPhases events={events} /> : <Phases label={text.phases} of={phasesOf(events, 0)} />}
      <Timeline label={text.steps} steps={events.map(stepOf)} />
      {traceparent === null ? null : <TraceLink traceparent={traceparent} />}
      <details open>
        <summary>{text.result}</summary>
        <Result command={command} />
      </details>
      <details>
        <summary>{text.payload}</summary>
        <Delivery timeline={timeline} />
      </details>
    </>
  );
};

export interface CommandPanelProps {
  readonly commandId: string;
  /** Only as a command of this device. */
  readonly deviceId?: string;
  readonly link: LinkToCommand;
  /** Beside the command's type, such as its device. */
  readonly about?: (timeline: CommandTimeline) => ReactNode;
  readonly onClose: () => void;
}

export const CommandPanel = ({ commandId, deviceId, link, about, onClose }: CommandPanelProps) => {
  const may = useMay();
  const read = useQuery(api.commands.timeline.queryOptions({ commandId, ...(deviceId === undefined ? {} : { deviceId }) }));
  const command = read.data?.command;
  return (
    <Panel
      title={command === undefined ? "Command" : command.type}
      beside={
        <button type="button" aria-label="Close the command" onClick={onClose}>
          ×
        </button>
      }
    >
      <div className="row">
        {command === undefined ? null : <Status status={command.status} />}
        {read.data === undefined ? null : about?.(read.data)}
        <Copyable text={commandId} />
        {command !== undefined && isOpen(command.status) && may("device:command") ? <CancelButtons command={command} /> : null}
      </div>
      <Loaded read={read} rows={6}>
        {(timeline) => <Story timeline={timeline} link={link} />}
      </Loaded>
    </Panel>
  );
};
