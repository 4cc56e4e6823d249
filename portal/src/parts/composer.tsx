// The dialog that sends a command to a device.
import type { CommandTypeRecord, Device } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../api/client.ts";
import { given } from "../api/search.ts";
import { useMay } from "../api/session.ts";
import { deviceLabel } from "../ui/device-label.ts";
import { Dialog, Field, Form, SelectField, TextField } from "../ui/dialog.tsx";
import { useId } from "../ui/use-id.ts";
import { useIntention } from "./intention.ts";
import css from "./parts.module.css";
import { type Checked, checkPayload, simpleFields } from "./payload.ts";
import { PayloadFields } from "./payload-fields.tsx";
import { text } from "./text.ts";

const numberOf = (fields: FormData, name: string): number | undefined => {
  const typed = String(fields.get(name) ?? "").trim();
  return typed === "" ? undefined : Number(typed);
};

const optionsOf = (fields: FormData) =>
  given({
    lane: String(fields.get("lane") ?? "").trim() || undefined,
    priority: numberOf(fields, "priority"),
    ttlSeconds: numberOf(fields, "ttlSeconds"),
    executionTimeoutSeconds: numberOf(fields, "executionTimeoutSeconds"),
    maxAttempts: numberOf(fields, "maxAttempts"),
    ifOffline: fields.get("ifOffline") === "fail" ? ("fail" as const) : undefined,
  });

const More = ({ known }: { readonly known: CommandTypeRecord | undefined }) => (
  <details>
    <summary>{text.more}</summary>
    <div className={css["more"]}>
      <TextField label={text.laneField} name="lane" hint={text.laneHint} maxLength={128} />
      <TextField label={text.priority} name="priority" type="number" min={0} max={9} placeholder="5" />
      <TextField label={text.ttl} name="ttlSeconds" type="number" min={60} max={2_592_000} placeholder={String(known?.ttlSeconds ?? 86_400)} />
      <TextField
        label={text.timeout}
        name="executionTimeoutSeconds"
        type="number"
        min={10}
        max={604_800}
        placeholder={String(known?.executionTimeoutSeconds ?? 900)}
      />
      <TextField label={text.attempts} name="maxAttempts" type="number" min={1} max={100} placeholder="10" />
    </div>
  </details>
);

/** What happens when it is sent, as the device is now. */
const Outlook = ({ device, ttlSeconds }: { readonly device: Pick<Device, "connection">; readonly ttlSeconds: number | undefined }) => {
  const [ifOffline, setIfOffline] = useState("queue");
  const { connectivity } = device.connection;
  return (
    <>
      <p role="status">
        {connectivity === "none" ? (
          <>
            <strong>{text.offline}</strong> {ifOffline === "fail" ? text.refused : text.waitsUntil(ttlSeconds)}
          </>
        ) : connectivity === "polling" ? (
          text.polling
        ) : null}
      </p>
      <div onInput={({ target }) => setIfOffline((target as unknown as HTMLSelectElement).value)}>
        <SelectField label={text.ifOffline} name="ifOffline" options={text.ifOfflineOptions} />
      </div>
    </>
  );
};

interface TypeFieldProps {
  readonly types: readonly CommandTypeRecord[];
  readonly value: string;
  readonly hint: string | undefined;
  readonly onChange: (type: string) => void;
}
const TypeField = ({ types, value, hint, onChange }: TypeFieldProps) => {
  const suggestions = useId();
  return (
    <Field label={text.type} hint={hint}>
      {(id, hintId) => (
        <>
          <input
            id={id}
            value={value}
            onChange={(event) => onChange(event.target.value)}
            list={suggestions}
            required
            maxLength={64}
            pattern="[A-Za-z][A-Za-z0-9._\-]*"
            autoComplete="off"
            spellCheck={false}
            aria-describedby={hintId}
          />
          <datalist id={suggestions}>
            {types.map(({ type, summary }) => (
              <option key={type} value={type} label={summary} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
};

interface JsonFieldProps {
  readonly json: string;
  readonly checked: Checked;
  readonly onChange: (json: string) => void;
}
const JsonField = ({ json, checked: { issues }, onChange }: JsonFieldProps) => (
  <Field
    label={text.payloadField}
    hint={
      <span role="status" className={issues.length > 0 ? css["issues"] : undefined}>
        {issues.length === 0 ? text.payloadOk : issues.join("; ")}
      </span>
    }
  >
    {(id, hintId) => (
      <textarea
        id={id}
        className={css["json"]}
        rows={5}
        spellCheck={false}
        value={json}
        aria-invalid={issues.length > 0}
        aria-describedby={hintId}
        onChange={(event) => onChange(event.target.value)}
      />
    )}
  </Field>
);

const Sure = ({ words, onChange }: { readonly words: string; readonly onChange: (sure: boolean) => void }) => (
  <label className="row">
    <input type="checkbox" required onChange={(event) => onChange(event.target.checked)} /> {words}
  </label>
);

export interface ComposerProps {
  readonly device: Pick<Device, "deviceId" | "name" | "hostname" | "connection">;
  /** To begin with. */
  readonly type?: string;
  readonly onClose: () => void;
  readonly onSent: (commandId: string) => void;
}

/** The type that was typed: what is known of it, what to say, and whether this person may send it. */
const useType = (typed: string) => {
  const may = useMay();
  const types = useQuery({ ...api.commands.types.queryOptions({}), staleTime: 600_000, refetchInterval: false });
  const known = types.data?.items.find(({ type }) => type === typed);
  const ofGateway = known?.orderedBy === "gateway" || /^svc\./i.test(typed);
  const forbidden = known !== undefined && !may(known.permission);
  const hint = ofGateway
    ? text.typeOfGateway
    : forbidden
      ? text.typeForbidden(known.permission)
      : known === undefined
        ? typed === "" || types.data === undefined
          ? undefined
          : text.typeUnknown
        : `${known.summary} ${text.typeFacts(known)}`;
  const offered = (types.data?.items ?? []).filter(({ orderedBy, permission }) => orderedBy === "caller" && may(permission));
  return { known, hint, offered, allowed: !ofGateway && !forbidden };
};

export const Composer = ({ device, type: first = "", onClose, onSent }: ComposerProps) => {
  const { deviceId } = device;
  const name = deviceLabel(device);
  const [type, setType] = useState(first);
  const [json, setJson] = useState("{}");
  const [sure, setSure] = useState("");
  const { known, hint, offered, allowed } = useType(type);
  const checked = checkPayload(json, known?.payload ?? null);
  const keyOf = useIntention();
  const queue = useMutation({
    ...api.commands.queue.mutationOptions(),
    onSuccess: ({ commandId }) => {
      onSent(commandId);
      return queryClient.invalidateQueries(api.commands.pathFilter());
    },
  });
  const send = (fields: FormData): void => {
    const order = { deviceId, type, payload: { ...checked.payload }, ...optionsOf(fields) };
    queue.mutate({ ...order, idempotencyKey: keyOf(order) });
  };
  const isDangerous = known?.risk === "danger";
  const ready = allowed && checked.payload !== null && checked.issues.length === 0 && (!isDangerous || sure === type);
  return (
    <Dialog title={text.sendTo(name)} open onClose={onClose}>
      <Form submit={text.send} busy={queue.isPending} error={queue.error} disabled={!ready} onSubmit={send} onCancel={onClose} danger={isDangerous}>
        <TypeField types={offered} value={type} hint={hint} onChange={setType} />
        {known === undefined || checked.payload === null ? null : (
          <PayloadFields fields={simpleFields(known.payload)} payload={checked.payload} onChange={setJson} />
        )}
        <JsonField json={json} checked={checked} onChange={setJson} />
        <Outlook device={device} ttlSeconds={known?.ttlSeconds} />
        <More known={known} />
        {isDangerous ? <Sure key={type} words={text.danger(type, name)} onChange={(yes) => setSure(yes ? type : "")} /> : null}
      </Form>
    </Dialog>
  );
};
