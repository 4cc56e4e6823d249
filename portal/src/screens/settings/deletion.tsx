// The end of the tenant, and the way back while it is only scheduled.
import type { Tenant } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Panel } from "../../ui/parts.tsx";
import { exactTime } from "../../ui/time.tsx";
import { text } from "./text.ts";

const readAgain = (): Promise<unknown> =>
  Promise.all([queryClient.invalidateQueries(api.tenants.pathFilter()), queryClient.invalidateQueries(api.account.pathFilter())]);

const DeleteTenant = ({ of: { tenantId, name, slug }, onClose }: { readonly of: Tenant; readonly onClose: () => void }) => {
  const [force, setForce] = useState(false);
  const remove = useMutation(
    api.tenants.remove.mutationOptions({
      onSuccess: async () => {
        await readAgain();
        onClose();
      },
    }),
  );
  return (
    <Confirm
      title={text.removeTitle(name)}
      open
      onClose={onClose}
      submit={text.remove}
      typed={slug}
      action={remove}
      onConfirm={() => remove.mutate({ tenantId, confirm: slug, force })}
    >
      <p>{text.dangerNote}</p>
      <label>
        <input type="checkbox" checked={force} onChange={({ target }) => setForce(target.checked)} /> {text.force}
      </label>
    </Confirm>
  );
};

export const Deletion = ({ of }: { readonly of: Tenant }) => {
  const [asked, setAsked] = useState(false);
  const restore = useMutation(api.tenants.restore.mutationOptions({ onSuccess: readAgain }));
  const { tenantId, status, deleteAfter } = of;
  return (
    <Panel title={text.danger}>
      {status === "pending_deletion" ? (
        <>
          <p role="status">
            <strong>{deleteAfter === undefined ? text.readOnly : text.scheduled(exactTime(deleteAfter))}</strong>
          </p>
          {restore.error === null ? null : <Failure error={restore.error} />}
          <div className="row">
            <button type="button" data-kind="primary" disabled={restore.isPending} onClick={() => restore.mutate({ tenantId })}>
              {text.restore}
            </button>
          </div>
        </>
      ) : (
        <>
          <p className="muted">{text.dangerNote}</p>
          <div className="row">
            <button type="button" data-kind="danger" disabled={status !== "active"} onClick={() => setAsked(true)}>
              {text.remove}
            </button>
          </div>
        </>
      )}
      {asked ? <DeleteTenant of={of} onClose={() => setAsked(false)} /> : null}
    </Panel>
  );
};
