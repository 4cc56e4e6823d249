// What people do with one backup beside restoring it: rename or hold it, download it, delete it.
import type { BackupWithActors as Backup } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { readBackupsAgain } from "../../parts/backups/back-up-now.tsx";
import { Confirm, Dialog, Form, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Copyable } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const DATE = "2026-01-01".length;

interface DialogProps {
  readonly backup: Backup;
  readonly onClose: () => void;
}

export const Remove = ({ backup: { backupId }, onClose }: DialogProps) => {
  const remove = useMutation(
    api.backups.remove.mutationOptions({
      onSuccess: async () => {
        onClose();
        await readBackupsAgain();
      },
    }),
  );
  return (
    <Confirm title={`${text.remove}?`} open onClose={onClose} submit={text.remove} action={remove} onConfirm={() => remove.mutate({ backupId })}>
      {text.removal}
    </Confirm>
  );
};

export const Change = ({ backup: { backupId, name, retainUntil, version }, onClose }: DialogProps) => {
  const change = useMutation(
    api.backups.change.mutationOptions({
      onSuccess: async () => {
        onClose();
        await readBackupsAgain();
      },
    }),
  );
  const send = (fields: FormData): void => {
    const until = String(fields.get("until"));
    change.mutate({ backupId, version, name: String(fields.get("name")), retainUntil: until === "" ? null : new Date(until).toISOString() });
  };
  return (
    <Dialog title={text.change} open onClose={onClose}>
      <Form submit={text.save} busy={change.isPending} error={change.error} onSubmit={send} onCancel={onClose}>
        <TextField label={text.name} name="name" required maxLength={100} defaultValue={name} />
        <TextField label={text.holdUntil} name="until" type="datetime-local" hint={text.holdHint} defaultValue={retainUntil?.slice(0, DATE + 6)} />
      </Form>
    </Dialog>
  );
};

/** Nobody gets a link before they ask for one: each is an order to the device. */
export const Download = ({ backup: { backupId, size }, onClose }: DialogProps) => {
  const make = useMutation(api.backups.download.mutationOptions());
  return (
    <Dialog title={text.downloadTitle} open onClose={onClose}>
      <p>{text.downloadWhat(size)}</p>
      <p className="muted">{text.downloadHow}</p>
      {make.error === null ? null : <Failure error={make.error} />}
      {make.data === undefined ? null : (
        <>
          <p>
            <a href={make.data.url} download={`${backupId}.tar`}>
              {text.downloadNow}
            </a>{" "}
            <span className="muted">
              {text.validUntil} <Ago at={make.data.expiresAt} />
            </span>
          </p>
          <Copyable text={make.data.url} label={text.copyLink} />
        </>
      )}
      <div className="row">
        <button type="button" data-kind="primary" disabled={make.isPending} onClick={() => make.mutate({ backupId })}>
          {make.data === undefined ? text.makeLink : text.makeAnother}
        </button>
        <button type="button" onClick={onClose}>
          {text.close}
        </button>
      </div>
    </Dialog>
  );
};
