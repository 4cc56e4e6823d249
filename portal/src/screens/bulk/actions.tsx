// What people do with a bulk job: exactly what its state allows.
import type { BulkOperation } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Dialog, Form, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { text } from "./text.ts";

type Job = Pick<BulkOperation, "operationId" | "actions" | "counts">;
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.bulkOperations.pathFilter());

const Cancel = ({ of: { operationId, counts }, onClose }: { readonly of: Job; readonly onClose: () => void }) => {
  const cancel = useMutation(
    api.bulkOperations.cancel.mutationOptions({
      onSuccess: async () => {
        await readAgain();
        onClose();
      },
    }),
  );
  return (
    <Dialog title={text.cancelTitle} open onClose={onClose}>
      <Form
        danger
        submit={text.cancel}
        back={text.keep}
        busy={cancel.isPending}
        error={cancel.error}
        onCancel={onClose}
        onSubmit={(fields) => cancel.mutate({ operationId, reason: String(fields.get("reason")) })}
      >
        <p>{text.cancelNote(counts.pending, counts.running)}</p>
        <TextField label={text.reason} name="reason" required maxLength={500} />
      </Form>
    </Dialog>
  );
};

export const BulkActions = ({ of }: { readonly of: Job }) => {
  const { operationId, actions } = of;
  const may = useMay();
  const navigate = useNavigate();
  const [cancelling, setCancelling] = useState(false);
  const done = { onSuccess: readAgain };
  const start = useMutation(api.bulkOperations.start.mutationOptions(done));
  const pause = useMutation(api.bulkOperations.pause.mutationOptions(done));
  const resume = useMutation(api.bulkOperations.resume.mutationOptions(done));
  const retry = useMutation(
    api.bulkOperations.retryFailed.mutationOptions({
      onSuccess: async ({ operationId: child }) => {
        await readAgain();
        await navigate({ to: "/bulk/$operationId", params: { operationId: child } });
      },
    }),
  );
  if (!may("bulk:write")) return null;
  const has = (action: Job["actions"][number]): boolean => actions.includes(action);
  const error = start.error ?? pause.error ?? resume.error ?? retry.error;
  return (
    <>
      {error === null ? null : <Failure error={error} />}
      {has("cancel") ? (
        <button type="button" data-kind="danger" onClick={() => setCancelling(true)}>
          {text.cancel}
        </button>
      ) : null}
      {has("pause") ? (
        <button type="button" disabled={pause.isPending} title={text.pauseNote} onClick={() => pause.mutate({ operationId })}>
          {text.pause}
        </button>
      ) : null}
      {has("retryFailed") ? (
        <button type="button" disabled={retry.isPending} onClick={() => retry.mutate({ operationId })}>
          {text.retry}
        </button>
      ) : null}
      {has("resume") ? (
        <button type="button" data-kind="primary" disabled={resume.isPending} onClick={() => resume.mutate({ operationId })}>
          {text.resume}
        </button>
      ) : null}
      {has("start") ? (
        <button type="button" data-kind="primary" disabled={start.isPending} onClick={() => start.mutate({ operationId })}>
          {text.start}
        </button>
      ) : null}
      {cancelling ? <Cancel of={of} onClose={() => setCancelling(false)} /> : null}
    </>
  );
};
