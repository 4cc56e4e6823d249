// The person's data: a copy of it, and the end of the account.
import type { Account } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, mooring, queryClient } from "../../api/client.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Panel } from "../../ui/parts.tsx";
import { saveFile } from "../../ui/save-file.ts";
import { dayOf } from "../../ui/time.tsx";
import { text } from "./text.ts";

const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.account.pathFilter());

const Leave = () => {
  const [asked, setAsked] = useState(false);
  const remove = useMutation(
    api.account.remove.mutationOptions({
      onSuccess: async () => {
        await readAgain();
        setAsked(false);
      },
    }),
  );
  return (
    <>
      <button type="button" data-kind="danger" onClick={() => setAsked(true)}>
        {text.remove}
      </button>
      {asked ? (
        <Confirm
          title={`${text.remove}?`}
          open
          onClose={() => setAsked(false)}
          submit={text.remove}
          typed={text.removeTyped}
          action={remove}
          onConfirm={() => remove.mutate({})}
        >
          {text.removeNote}
        </Confirm>
      ) : null}
    </>
  );
};

const Stay = ({ day }: { readonly day: string }) => {
  const restore = useMutation(api.account.restore.mutationOptions({ onSuccess: readAgain }));
  return (
    <>
      <strong role="status">{text.leaving(day)}</strong>
      <button type="button" data-kind="primary" disabled={restore.isPending} onClick={() => restore.mutate({})}>
        {text.restore}
      </button>
      {restore.error === null ? null : <Failure error={restore.error} />}
    </>
  );
};

export const OwnData = ({ of: { deleteAfter } }: { readonly of: Account }) => {
  const copy = useMutation({
    mutationFn: async () => saveFile("account.json", "application/json", [JSON.stringify(await mooring.account.export.query({}), null, 2)]),
  });
  return (
    <Panel title={text.data}>
      <p className="muted">{text.exportNote}</p>
      {copy.error === null ? null : <Failure error={copy.error} />}
      <div className="row">
        <button type="button" disabled={copy.isPending} onClick={() => copy.mutate()}>
          {text.export}
        </button>
        {deleteAfter === null ? <Leave /> : <Stay day={dayOf(deleteAfter)} />}
      </div>
    </Panel>
  );
};
