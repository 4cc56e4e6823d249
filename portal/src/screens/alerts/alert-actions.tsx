// What people do with an alert that is not over: acknowledge, snooze and resolve it.
import type { Alert } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { gatewayNow } from "../../ui/clock.ts";
import { Dialog, Field, Form, SelectField } from "../../ui/dialog.tsx";
import { text } from "./text.ts";

const WORDS = {
  acknowledge: { title: text.acknowledge, says: text.acknowledgeNote },
  snooze: { title: text.snooze, says: text.snoozeNote },
  resolve: { title: text.resolve, says: text.resolveNote },
} as const;
type Action = keyof typeof WORDS;

const useAct = ({ alertId }: Alert, onClose: () => void) => {
  const done = {
    onSuccess: async () => {
      await queryClient.invalidateQueries(api.alerts.pathFilter());
      onClose();
    },
  };
  const acknowledge = useMutation(api.alerts.acknowledge.mutationOptions(done));
  const snooze = useMutation(api.alerts.snooze.mutationOptions(done));
  const resolve = useMutation(api.alerts.resolve.mutationOptions(done));
  const note = (fields: FormData) => {
    const typed = String(fields.get("note") ?? "").trim();
    return typed === "" ? {} : { note: typed };
  };
  return {
    acknowledge: { by: acknowledge, send: (fields: FormData) => acknowledge.mutate({ alertId, ...note(fields) }) },
    snooze: {
      by: snooze,
      send: (fields: FormData) => snooze.mutate({ alertId, until: new Date(gatewayNow() + 1_000 * Number(fields.get("seconds"))).toISOString() }),
    },
    resolve: { by: resolve, send: (fields: FormData) => resolve.mutate({ alertId, ...note(fields) }) },
  } as const;
};

const Act = ({ of, action, onClose }: { readonly of: Alert; readonly action: Action; readonly onClose: () => void }) => {
  const { by, send } = useAct(of, onClose)[action];
  const { title, says } = WORDS[action];
  return (
    <Dialog title={title} open onClose={onClose}>
      <Form submit={title} busy={by.isPending} error={by.error} onSubmit={send} onCancel={onClose}>
        <p>{says}</p>
        {action === "snooze" ? (
          <SelectField label={text.length} name="seconds" defaultValue="3600" options={text.lengths} />
        ) : (
          <Field label={text.note} hint={text.noteHint}>
            {(id, hintId) => <textarea id={id} aria-describedby={hintId} name="note" rows={2} maxLength={500} />}
          </Field>
        )}
      </Form>
    </Dialog>
  );
};

export const AlertActions = ({ of }: { readonly of: Alert }) => {
  const [opened, setOpened] = useState<Action | null>(null);
  const actions = (Object.keys(WORDS) as Action[]).filter((action) => action !== "acknowledge" || of.status === "open");
  return (
    <div className="row">
      {actions.map((action) => (
        <button key={action} type="button" data-kind={action === "acknowledge" ? "primary" : undefined} onClick={() => setOpened(action)}>
          {WORDS[action].title}
        </button>
      ))}
      {opened === null ? null : <Act of={of} action={opened} onClose={() => setOpened(null)} />}
    </div>
  );
};
