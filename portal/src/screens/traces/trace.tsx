// One trace: its spans as a tree, each with a bar on the common axis of time, and the chosen span beside them.
import type { Trace, TraceSpan } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type CSSProperties, useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { gatewayNow } from "../../ui/clock.ts";
import { numbers } from "../../ui/count.ts";
import { type Column, Table } from "../../ui/list/table.tsx";
import { Copyable, Facts, Loaded, Page } from "../../ui/parts.tsx";
import { Split } from "../../ui/split.tsx";
import { Shape, Status } from "../../ui/status.tsx";
import { exactTime } from "../../ui/time.tsx";
import { Span } from "./span.tsx";
import { text, took } from "./text.ts";
import css from "./traces.module.css";
import { extentOf, type Node, placeOf, treeOf } from "./tree.ts";

const route = getRouteApi("/traces/$traceId");

/** Deeper spans stand below each other, or their names would have no room. */
const MAX_STEPS = 12;
/** Where the lines behind the bars are. */
const MARKS = [0, 0.25, 0.5, 0.75] as const;

const Name = ({ span: { operation, status }, depth }: Node) => (
  <span className={css["name"]} style={{ "--depth": Math.min(depth, MAX_STEPS) } as CSSProperties} title={operation}>
    {status === "error" ? (
      <>
        <Shape tone="bad" /> <span className="out-of-sight">error: </span>
      </>
    ) : null}
    {operation}
  </span>
);

const columnsOf = (spans: readonly TraceSpan[]): readonly Column<Node>[] => {
  const extent = extentOf(spans);
  const axis = (
    <span className={css["axis"]}>
      {MARKS.map((part) => (
        <span key={part}>{took(part * extent.ms)}</span>
      ))}
    </span>
  );
  return [
    { title: text.operation, width: "minmax(0, 1.4fr)", phone: true, cell: Name },
    { title: text.service, width: "minmax(0, 0.5fr)", cell: ({ span }) => <span className="muted">{span.service}</span> },
    { title: "Took", width: "64px", phone: true, cell: ({ span }) => took(span.durationMs) },
    {
      title: "When",
      head: axis,
      width: "minmax(0, 1.4fr)",
      phone: true,
      cell: ({ span }) => (
        <span className={css["track"]}>
          <span className={css["bar"]} data-status={span.status} data-source={span.source} style={placeOf(span, extent)} />
        </span>
      ),
    },
  ];
};

const Spans = ({ of }: { readonly of: Trace }) => {
  const { span: chosen } = route.useSearch();
  const navigate = useNavigate();
  const { traceId, spans } = of;
  const nodes = useMemo(() => treeOf(spans), [spans]);
  const columns = useMemo(() => columnsOf(spans), [spans]);
  const open = useCallback(
    (span?: string): void => void navigate({ to: "/traces/$traceId", params: { traceId }, search: span === undefined ? {} : { span } }),
    [navigate, traceId],
  );
  const close = useCallback(() => open(), [open]);
  const shown = spans.find(({ spanId }) => spanId === chosen);
  return (
    <Split
      onClose={close}
      detail={shown === undefined ? null : <Span key={shown.spanId} of={shown} start={Date.parse(of.startTime)} onClose={close} />}
      list={
        <Table
          label={text.waterfall}
          columns={shown === undefined ? columns : columns.filter(({ phone }) => phone === true)}
          count={nodes.length}
          row={(index) => nodes[index]}
          id={({ span }) => span.spanId}
          onOpen={({ span }) => open(span.spanId)}
          opened={chosen}
          fill
        />
      }
    />
  );
};

const YOUNG_MS = 300_000;
const READ_AGAIN_MS = 5_000;

export const TraceScreen = () => {
  const { traceId } = route.useParams();
  const read = useQuery({
    ...api.traces.get.queryOptions({ traceId }),
    // The spans of a trace come one after the other, without events.
    refetchInterval: ({ state: { data } }) => (data !== undefined && gatewayNow() - Date.parse(data.startTime) < YOUNG_MS ? READ_AGAIN_MS : false),
  });
  return (
    <Page title={read.data?.rootOperation ?? text.one} beside={<Copyable text={traceId} />} fill>
      <Loaded read={read} rows={10}>
        {(trace) => (
          <>
            <Facts
              of={{
                [text.service]: trace.rootService,
                Began: exactTime(trace.startTime),
                Took: took(trace.durationMs),
                [text.waterfall]: numbers.format(trace.spanCount),
                [text.status]: <Status status={trace.errorCount > 0 ? "error" : "ok"} word={trace.errorCount > 0 ? text.errors(trace.errorCount) : "ok"} />,
                Services: trace.services.join(", "),
              }}
            />
            {trace.truncated ? <p>{text.truncated(trace.spans.length)}</p> : null}
            <Spans of={trace} />
          </>
        )}
      </Loaded>
    </Page>
  );
};
