// One event: what happened, to what, in which call, and its data.
import type { TenantEvent } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { ResourceLink } from "../../parts/resource-link.tsx";
import { Copyable, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { exactTime } from "../../ui/time.tsx";
import { Value } from "../../ui/value.tsx";
import { text } from "./text.ts";

const TraceLink = ({ traceparent }: { readonly traceparent: string }) => {
  const may = useMay();
  const [, traceId = ""] = traceparent.split("-");
  return may("trace:read") ? (
    <Link to="/traces/$traceId" params={{ traceId }} className="mono">
      {traceId}
    </Link>
  ) : (
    <Copyable text={traceId} />
  );
};

const Shown = ({ of: { eventId, type, subjectId, at, sequence, data, requestId, traceparent } }: { readonly of: TenantEvent }) => (
  <>
    <Facts
      of={{
        When: exactTime(at),
        Subject: <ResourceLink id={subjectId} />,
        Number: sequence,
        Id: <Copyable text={eventId} />,
        Request: requestId === null ? null : <Copyable text={requestId} />,
        Trace: traceparent === null ? null : <TraceLink traceparent={traceparent} />,
      }}
    />
    <Value label={text.data} value={data} />
    <nav className="row" aria-label={text.alike}>
      <Link to="/events" search={{ subject: subjectId }}>
        {text.sameSubject}
      </Link>
      <Link to="/events" search={{ type }}>
        {text.sameType}
      </Link>
    </nav>
  </>
);

export const Event = ({ eventId, onClose }: { readonly eventId: string; readonly onClose: () => void }) => {
  const read = useQuery({ ...api.webhooks.getEvent.queryOptions({ eventId }), staleTime: Number.POSITIVE_INFINITY, refetchInterval: false });
  return (
    <Panel
      title={read.data?.type ?? text.one}
      beside={
        <button type="button" data-kind="plain" onClick={onClose}>
          {text.close}
        </button>
      }
    >
      <Loaded read={read} rows={8}>
        {(event) => <Shown of={event} />}
      </Loaded>
    </Panel>
  );
};
