// A restore, in two steps: the device says what it would do, then somebody lets it.
import type { Backup, RestoreWithActors as Restore } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { readBackupsAgain } from "../../parts/backups/back-up-now.tsx";
import { PickDevices } from "../../parts/selector-field.tsx";
import { bytesText } from "../../ui/bytes.ts";
import { Dialog, Field, Form } from "../../ui/dialog.tsx";
import { Failure, FailureOf } from "../../ui/failure.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Facts, Skeleton } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { text } from "./text.ts";

const AGAIN_MS = 1_000;
const isOver = ({ status }: Pick<Restore, "status">): boolean => ["completed", "failed", "cancelled"].includes(status);

/** A restore as it goes on; its steps are events, and how far it is has none. */
const useRestore = (restoreId: string | undefined) =>
  useQuery({
    ...api.backups.getRestore.queryOptions({ restoreId: restoreId ?? "" }),
    enabled: restoreId !== undefined,
    refetchInterval: ({ state: { data } }) => (data !== undefined && isOver(data) ? false : AGAIN_MS),
  });

interface Wishes {
  readonly restoreType: Restore["restoreType"];
  readonly paths: string[];
  readonly targetDeviceId?: string;
}

interface AskProps {
  readonly action: { readonly isPending: boolean; readonly error: unknown };
  readonly onSubmit: (wishes: Wishes) => void;
  readonly onCancel: () => void;
  readonly kind: Backup["type"];
}
const Ask = ({ action, onSubmit, onCancel, kind }: AskProps) => {
  const [restoreType, setType] = useState<Restore["restoreType"]>(kind === "config" ? "config" : "full");
  const [devices, setDevices] = useState<string[]>([]);
  const [typed, setTyped] = useState("");
  const paths = typed
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const send = (): void => {
    const [targetDeviceId] = devices;
    onSubmit({ restoreType, paths: restoreType === "selective" ? paths : [], ...(targetDeviceId === undefined ? {} : { targetDeviceId }) });
  };
  return (
    <Form
      submit={text.plan}
      busy={action.isPending}
      error={action.error}
      onSubmit={send}
      onCancel={onCancel}
      disabled={restoreType === "selective" && paths.length === 0}
    >
      <Field label={text.what}>
        {(id) => (
          <select id={id} value={restoreType} onChange={({ target }) => setType(text.whats.find(([value]) => value === target.value)?.[0] ?? "full")}>
            {text.whats
              .filter(([value]) => kind === "full" || value === "config")
              .map(([value, word]) => (
                <option key={value} value={value}>
                  {word}
                </option>
              ))}
          </select>
        )}
      </Field>
      {restoreType === "selective" ? (
        <Field label={text.paths} hint={text.pathsHint}>
          {(id, hintId) => (
            <textarea
              id={id}
              aria-describedby={hintId}
              rows={4}
              maxLength={400_000}
              spellCheck={false}
              value={typed}
              onChange={({ target }) => setTyped(target.value)}
            />
          )}
        </Field>
      ) : null}
      <PickDevices label={text.target} picked={devices} onChange={(ids) => setDevices(ids.slice(-1))} />
      <p className="muted">{text.targetHint}</p>
    </Form>
  );
};

/** What the device found, or that it failed. */
const Planned = ({ of: { plan } }: { readonly of: Restore }) => {
  if (plan === null) return null;
  const { files, bytes, freeBytes, replaces } = plan;
  return (
    <>
      <Facts
        of={{
          [text.writes]: text.writesWhat(files, bytesText(bytes)),
          [text.free]: freeBytes === null ? null : bytesText(freeBytes),
          [text.replaces]: replaces.length === 0 ? text.replacesNothing : <span className="mono">{replaces.join(", ")}</span>,
        }}
      />
      {freeBytes !== null && freeBytes < bytes ? <Notice tone="warn" title={text.tooLittle} /> : null}
      {replaces.length === 0 ? null : <p>{text.safety}</p>}
    </>
  );
};

const Failed = ({ of: { failure } }: { readonly of: Restore }) =>
  failure === null ? null : (
    <Notice tone="bad" role="alert" title={text.failed}>
      <p>
        {failure.message} <code>{failure.reason}</code>
      </p>
      {failure.previousData === null ? null : <p>{failure.previousData === "kept" ? text.kept : text.notKept}</p>}
    </Notice>
  );

const Progress = ({ restoreId, onClose }: { readonly restoreId: string; readonly onClose: () => void }) => {
  const read = useRestore(restoreId);
  const { data } = read;
  return (
    <div className="stack">
      <FailureOf read={read} />
      {data === undefined ? (
        <Skeleton rows={2} />
      ) : (
        <div role="status" className="row">
          <Status status={data.status} />
          {data.progress?.percent == null || isOver(data) ? null : <span>{Math.round(data.progress.percent)} %</span>}
          <span>{data.status === "completed" ? text.done : isOver(data) ? null : text.running}</span>
        </div>
      )}
      {data === undefined ? null : <Failed of={data} />}
      <div className="row">
        {data?.status === "completed" ? (
          <Link to="/apps/$appId" params={{ appId: data.targetAppId }} data-kind="primary">
            {text.openApp}
          </Link>
        ) : null}
        <button type="button" onClick={onClose}>
          {text.close}
        </button>
      </div>
    </div>
  );
};

interface AnsweredProps {
  readonly of: Restore;
  readonly action: { readonly isPending: boolean; readonly error: unknown };
  readonly onConfirm: (replaces: boolean) => void;
}
/** What the device found, and the button that lets it. */
const Answered = ({ of, action, onConfirm }: AnsweredProps) => {
  const { plan } = of;
  const replaces = plan !== null && plan.replaces.length > 0;
  return (
    <>
      <h3>{text.planned}</h3>
      <Planned of={of} />
      <Failed of={of} />
      {action.error === null ? null : <Failure error={action.error} />}
      {plan === null ? null : (
        <div>
          <button type="button" data-kind={replaces ? "danger" : "primary"} disabled={action.isPending} onClick={() => onConfirm(replaces)}>
            {replaces ? text.doReplace : text.doRestore}
          </button>
        </div>
      )}
    </>
  );
};

export const RestoreDialog = ({ backup: { backupId, type }, onClose }: { readonly backup: Backup; readonly onClose: () => void }) => {
  const [wishes, setWishes] = useState<Wishes | null>(null);
  const plan = useMutation(api.backups.restore.mutationOptions());
  const order = useMutation(api.backups.restore.mutationOptions({ onSuccess: readBackupsAgain }));
  const planned = useRestore(plan.data?.restoreId);
  const ask = (next: Wishes): void => {
    setWishes(next);
    plan.mutate({ backupId, ...next, dryRun: true, overwriteExisting: true });
  };
  const confirm = (overwriteExisting: boolean): void => {
    if (wishes !== null) order.mutate({ backupId, ...wishes, overwriteExisting });
  };
  const looked = (
    <div className="stack">
      {planned.data === undefined || !isOver(planned.data) ? (
        <>
          <FailureOf read={planned} />
          <p role="status">{text.planning}</p>
          <Skeleton rows={3} />
        </>
      ) : (
        <Answered of={planned.data} action={order} onConfirm={confirm} />
      )}
      <div>
        <button type="button" onClick={() => plan.reset()}>
          {text.back}
        </button>
      </div>
    </div>
  );
  return (
    <Dialog title={text.restoreTitle} open onClose={onClose}>
      {order.data !== undefined ? (
        <Progress restoreId={order.data.restoreId} onClose={onClose} />
      ) : plan.data === undefined ? (
        <Ask kind={type} action={plan} onSubmit={ask} onCancel={onClose} />
      ) : (
        looked
      )}
    </Dialog>
  );
};
