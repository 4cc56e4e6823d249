// One alert: what is wrong and since when, who takes care of it, and what it is about.
import type { Alert, AlertTarget } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { gatewayNow } from "../../ui/clock.ts";
import { numbers } from "../../ui/count.ts";
import { type Column, Table } from "../../ui/list/table.tsx";
import { Copyable, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { type Step, Timeline } from "../../ui/timeline.tsx";
import { AlertActions } from "./alert-actions.tsx";
import { text } from "./text.ts";

const stepsOf = ({ startedAt, acknowledgedAt, acknowledgedBy, resolvedAt, resolvedBy }: Alert): readonly Step[] => [
  { status: "open", at: startedAt, facts: [] },
  ...(acknowledgedAt === null ? [] : [{ status: "acknowledged", at: acknowledgedAt, facts: [text.somebody(acknowledgedBy)] }]),
  ...(resolvedAt === null ? [] : [{ status: "resolved", at: resolvedAt, facts: [text.somebody(resolvedBy)] }]),
];

const Named = ({ target: { kind, id, name } }: { readonly target: Pick<AlertTarget, "kind" | "id" | "name"> }) =>
  kind === "device" ? (
    <Link to="/devices/$deviceId" params={{ deviceId: id }}>
      {name ?? id}
    </Link>
  ) : (
    <span className={name === null ? "mono" : undefined}>{name ?? id}</span>
  );

const COLUMNS: readonly Column<AlertTarget>[] = [
  { title: "Name", width: "minmax(100px, 2fr)", phone: true, cell: (target) => <Named target={target} /> },
  { title: "Value", width: "80px", phone: true, cell: ({ value }) => numbers.format(value) },
  {
    title: "Still true",
    width: "108px",
    phone: true,
    cell: ({ active, silenced }) => (
      <Status status={active ? (silenced ? "pending" : "failed") : "ok"} word={active ? (silenced ? text.silenced : "yes") : "no"} />
    ),
  },
  { title: "Since", width: AGO_WIDTH, cell: ({ startedAt }) => <Ago at={startedAt} /> },
];

const Targets = ({ alertId }: { readonly alertId: string }) => {
  const list = usePages<AlertTarget>((page) => api.alerts.listTargets.queryOptions({ alertId, page, pageSize: PAGE_SIZE }));
  return (
    <Loaded read={list.read}>
      {() => (list.count === 0 ? <p className="muted">{text.noTarget}</p> : <Table label={text.targets} columns={COLUMNS} {...list} id={({ id }) => id} />)}
    </Loaded>
  );
};

const Shown = ({ alert }: { readonly alert: Alert }) => {
  const may = useMay();
  const isOver = alert.status === "resolved";
  const isSnoozed = !isOver && alert.snoozedUntil !== null && Date.parse(alert.snoozedUntil) > gatewayNow();
  return (
    <>
      {alert.summary === "" ? null : <p>{alert.summary}</p>}
      <Facts
        of={{
          State: <Status status={alert.status} />,
          Severity: <Status status={alert.severity} />,
          Began: <Ago at={alert.startedAt} />,
          "Seen last": <Ago at={alert.lastSeenAt} />,
          Snoozed: isSnoozed ? <Ago at={alert.snoozedUntil} /> : null,
          Quiet: isOver ? null : alert.silenced ? text.silenced : alert.flapping ? text.flapping : null,
          Opened: text.times(alert.occurrences),
          Type: <code>{alert.type}</code>,
          Rule: may("alert_rule:read") ? (
            <Link to="/alerts" search={{ tab: "rules", open: alert.ruleId }}>
              {text.showRule}
            </Link>
          ) : null,
          Id: <Copyable text={alert.alertId} />,
          Note: alert.note,
        }}
      />
      {may("alert:acknowledge") && !isOver ? <AlertActions of={alert} /> : null}
      <div className="muted">{text.history}</div>
      <Timeline label={text.history} steps={stepsOf(alert)} />
      <div className="muted">{text.targets}</div>
      <Targets alertId={alert.alertId} />
    </>
  );
};

export const AlertPanel = ({ alertId, onClose }: { readonly alertId: string; readonly onClose: () => void }) => {
  const read = useQuery(api.alerts.get.queryOptions({ alertId }));
  return (
    <Panel
      title={read.data?.title ?? "Alert"}
      beside={
        <button type="button" data-kind="plain" onClick={onClose}>
          {text.close}
        </button>
      }
    >
      <Loaded read={read} rows={8}>
        {(alert) => <Shown alert={alert} />}
      </Loaded>
    </Panel>
  );
};
