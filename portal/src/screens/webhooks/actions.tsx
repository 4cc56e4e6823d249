// What people do with a webhook: test, change, pause, rotate its secret, replay and delete it.
import type { Webhook } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { gatewayNow } from "../../ui/clock.ts";
import { Confirm, Dialog, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { NewWebhookSecret } from "./new-webhook-secret.tsx";
import { TestWebhook } from "./test.tsx";
import { text } from "./text.ts";
import { WebhookForm } from "./webhook-form.tsx";

interface Props {
  readonly of: Webhook;
  readonly onClose: () => void;
}

const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.webhooks.pathFilter());

const ChangeWebhook = ({ of, onClose }: Props) => {
  const update = useMutation(
    api.webhooks.update.mutationOptions({
      onSuccess: async () => {
        await readAgain();
        onClose();
      },
    }),
  );
  return (
    <Dialog title={text.changed} open onClose={onClose}>
      <WebhookForm
        of={of}
        submit={text.save}
        action={update}
        onCancel={onClose}
        onSubmit={({ secret: _, ...wishes }) => update.mutate({ webhookId: of.webhookId, version: of.version, ...wishes })}
      />
    </Dialog>
  );
};

const RotateSecret = ({ of, onClose }: Props) => {
  const rotate = useMutation(api.webhooks.rotateSecret.mutationOptions({ onSuccess: readAgain, gcTime: 0 }));
  const send = (fields: FormData): void => {
    const secret = String(fields.get("secret"));
    rotate.mutate({ webhookId: of.webhookId, graceSeconds: Number(fields.get("grace")), ...(secret === "" ? {} : { secret }) });
  };
  return (
    <Dialog title={text.rotate} open onClose={onClose}>
      {rotate.data === undefined ? (
        <Form submit={text.rotate} busy={rotate.isPending} error={rotate.error} onCancel={onClose} onSubmit={send}>
          <p>{text.rotateNote}</p>
          <SelectField label={text.grace} name="grace" defaultValue="86400" options={text.graces} />
          <TextField label={text.secret} name="secret" type="password" maxLength={256} hint={text.secretHint} />
        </Form>
      ) : (
        <NewWebhookSecret made={rotate.data} note={text.rotated} onDone={onClose} />
      )}
    </Dialog>
  );
};

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** As the browser's field wants it: the local time, to the minute. */
const localTime = (at: number): string => new Date(at - MINUTE_MS * new Date(at).getTimezoneOffset()).toISOString().slice(0, "2026-01-01T00:00".length);
const momentOf = (typed: FormDataEntryValue | null): string => new Date(String(typed)).toISOString();

const Replay = ({ of: { webhookId }, onClose }: Props) => {
  const [since] = useState(() => localTime(gatewayNow() - DAY_MS));
  const replay = useMutation(api.webhooks.replay.mutationOptions({ onSuccess: readAgain }));
  const send = (fields: FormData): void => {
    const kind = text.replayKinds.find(([value]) => value === fields.get("kind"))?.[0] ?? "failed";
    const until = fields.get("until") === "" ? {} : { until: momentOf(fields.get("until")) };
    replay.mutate({ webhookId, since: momentOf(fields.get("since")), ...until, status: kind });
  };
  return (
    <Dialog title={text.replayTitle} open onClose={onClose}>
      {replay.data === undefined ? (
        <Form submit={text.replay} busy={replay.isPending} error={replay.error} onCancel={onClose} onSubmit={send}>
          <p>{text.replayNote}</p>
          <SelectField label={text.replayWhat} name="kind" options={text.replayKinds} />
          <TextField label={text.since} name="since" type="datetime-local" required defaultValue={since} />
          <TextField label={text.until} name="until" type="datetime-local" hint={text.untilHint} />
        </Form>
      ) : (
        <div className="stack">
          <p role="status">{text.replayed(replay.data.events)}</p>
          <div className="row">
            <button type="button" data-kind="primary" onClick={onClose}>
              {text.done}
            </button>
          </div>
        </div>
      )}
    </Dialog>
  );
};

const Remove = ({ of: { webhookId, url }, onClose }: Props) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.webhooks.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/webhooks" });
        queryClient.removeQueries(api.webhooks.get.queryFilter({ webhookId }));
        queryClient.removeQueries(api.webhooks.listDeliveries.pathFilter());
        await readAgain();
      },
    }),
  );
  return (
    <Confirm title={text.removeTitle} open onClose={onClose} submit={text.remove} action={remove} onConfirm={() => remove.mutate({ webhookId })}>
      <p className="mono">{url}</p>
      <p>{text.removal}</p>
    </Confirm>
  );
};

const DIALOGS = { change: ChangeWebhook, rotate: RotateSecret, replay: Replay, remove: Remove } as const;
type Opened = keyof typeof DIALOGS | "test";

export const WebhookActions = ({ of }: { readonly of: Webhook }) => {
  const may = useMay();
  const [opened, setOpened] = useState<Opened | null>(null);
  const Shown = opened === null || opened === "test" ? null : DIALOGS[opened];
  const update = useMutation(api.webhooks.update.mutationOptions({ onSuccess: readAgain }));
  const close = (): void => setOpened(null);
  const action = (name: Opened, word: string, kind?: "danger") => (
    <button type="button" data-kind={kind} onClick={() => setOpened(name)}>
      {word}
    </button>
  );
  const paused = of.status === "disabled";
  return (
    <>
      {may("webhook:deliver") ? action("test", text.test) : null}
      {may("webhook:write") ? (
        <>
          {action("change", text.change)}
          <button
            type="button"
            disabled={update.isPending}
            onClick={() => update.mutate({ webhookId: of.webhookId, version: of.version, status: paused ? "active" : "disabled" })}
          >
            {paused ? text.enable : text.pause}
          </button>
          {action("rotate", text.rotate)}
          {action("replay", text.replay)}
          {action("remove", text.remove, "danger")}
        </>
      ) : null}
      {update.error === null ? null : <Failure error={update.error} />}
      {opened === "test" ? <TestWebhook of={of} onClose={close} /> : null}
      {Shown === null ? null : <Shown of={of} onClose={close} />}
    </>
  );
};
