// One security alert: what happened, about what, who looks at it, and what to do.
import type { SecurityAlert } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Dialog, Field, Form, SelectField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Copyable, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { type Step, Timeline } from "../../ui/timeline.tsx";
import { Block, blockable } from "./block.tsx";
import { Entity } from "./entity.tsx";
import { MEANINGS } from "./meanings.ts";
import { text } from "./text.ts";

const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.security.pathFilter());

const stepsOf = ({ createdAt, acknowledgedAt, acknowledgedBy, resolvedAt, resolvedBy, resolution }: SecurityAlert): readonly Step[] => [
  { status: "open", at: createdAt, facts: [] },
  ...(acknowledgedAt === null ? [] : [{ status: "acknowledged", at: acknowledgedAt, facts: [text.somebody(acknowledgedBy)] }]),
  ...(resolvedAt === null
    ? []
    : [{ status: "resolved", at: resolvedAt, facts: [...(resolution === null ? [] : [text.resolutions[resolution]]), text.somebody(resolvedBy)] }]),
];

const Resolve = ({ alertId, onClose }: { readonly alertId: string; readonly onClose: () => void }) => {
  const resolve = useMutation(
    api.security.resolve.mutationOptions({
      onSuccess: async () => {
        await readAgain();
        onClose();
      },
    }),
  );
  const send = (fields: FormData): void => {
    const note = String(fields.get("note")).trim();
    const resolution = String(fields.get("resolution")) as NonNullable<SecurityAlert["resolution"]>; // as: the options say so
    resolve.mutate({ alertId, resolution, note: note === "" ? null : note });
  };
  return (
    <Dialog title={text.resolve} open onClose={onClose}>
      <Form submit={text.resolve} busy={resolve.isPending} error={resolve.error} onSubmit={send} onCancel={onClose}>
        <SelectField label={text.resolution} name="resolution" defaultValue="mitigated" options={Object.entries(text.resolutions)} />
        <Field label={text.note} hint={text.noteHint}>
          {(id, hintId) => <textarea id={id} aria-describedby={hintId} name="note" rows={2} maxLength={1_000} />}
        </Field>
      </Form>
    </Dialog>
  );
};

const Actions = ({ of: { id: alertId, status, entityType, entityId } }: { readonly of: SecurityAlert }) => {
  const may = useMay();
  const [opened, setOpened] = useState<"resolve" | "block" | null>(null);
  const acknowledge = useMutation(api.security.acknowledge.mutationOptions({ onSuccess: readAgain }));
  const type = blockable(entityType);
  const responds = may("security:respond") && status !== "resolved";
  return (
    <>
      <div className="row">
        {responds && status === "open" ? (
          <button type="button" data-kind="primary" disabled={acknowledge.isPending} onClick={() => acknowledge.mutate({ alertId })}>
            {text.acknowledge}
          </button>
        ) : null}
        {responds ? (
          <button type="button" onClick={() => setOpened("resolve")}>
            {text.resolve}
          </button>
        ) : null}
        {may("security:block") && type !== undefined ? (
          <button type="button" data-kind="danger" onClick={() => setOpened("block")}>
            {text.block}
          </button>
        ) : null}
      </div>
      {acknowledge.error === null ? null : <Failure error={acknowledge.error} />}
      {opened === "resolve" ? <Resolve alertId={alertId} onClose={() => setOpened(null)} /> : null}
      {opened === "block" ? <Block of={{ entityType: type, entityValue: entityId }} onClose={() => setOpened(null)} /> : null}
    </>
  );
};

const Shown = ({ alert }: { readonly alert: SecurityAlert }) => {
  const { entityId, ruleId, previousAlertId } = alert;
  return (
    <>
      <Facts
        of={{
          State: <Status status={alert.status} />,
          Severity: <Status status={alert.severity} />,
          About: <Entity entityType={alert.entityType} entityId={entityId} />,
          Happened: text.total(alert.count),
          Last: <Ago at={alert.lastEventAt} />,
          Type: <code>{alert.type}</code>,
          Id: <Copyable text={alert.id} />,
          Note: alert.note,
        }}
      />
      <Actions of={alert} />
      <nav className="row" aria-label="More">
        <Link to="/security" search={{ tab: "events", entityId, type: alert.type }}>
          {text.itsEvents}
        </Link>
        <Link to="/security" search={{ tab: "rules", open: ruleId }}>
          {text.itsRule}
        </Link>
        {previousAlertId === null ? null : (
          <Link to="/security" search={{ open: previousAlertId }}>
            {text.before}
          </Link>
        )}
      </nav>
      <div className="muted">{text.history}</div>
      <Timeline label={text.history} steps={stepsOf(alert)} />
    </>
  );
};

export const AlertPanel = ({ alertId, onClose }: { readonly alertId: string; readonly onClose: () => void }) => {
  const read = useQuery(api.security.getAlert.queryOptions({ alertId }));
  return (
    <Panel
      title={read.data === undefined ? "Alert" : MEANINGS[read.data.type]}
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
