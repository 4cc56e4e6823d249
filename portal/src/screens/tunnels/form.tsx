// The form of a tunnel: what it leads to, under which name, who may come in, and until when.
import type { Tunnel } from "@mooring/client";
import { useState } from "react";
import { useMay } from "../../api/session.ts";
import { PickDevices } from "../../parts/selector-field.tsx";
import { Field, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { LIMITS, type LimitName, text } from "./text.ts";

const MINUTES = "yyyy-mm-ddThh:mm".length;
/** As `datetime-local` takes it. */
const localTime = (at: string): string => new Date(Date.parse(at) - 60_000 * new Date(at).getTimezoneOffset()).toISOString().slice(0, MINUTES);

/** What a new tunnel and a change have in common. */
export interface TunnelWishes {
  readonly name: string;
  readonly hostname: string | undefined;
  readonly access: { readonly mode: Tunnel["access"]["mode"]; readonly allow: string[] };
  readonly hostHeader: Tunnel["hostHeader"];
  readonly limits: Tunnel["limits"];
  readonly expiresAt: string | null;
  /** Undefined: connectors serve it. */
  readonly device: { readonly deviceId: string; readonly targetPort: number; readonly protocol: Tunnel["protocol"] } | undefined;
  readonly service: string | undefined;
}

interface TunnelFormProps {
  readonly of?: Tunnel;
  readonly submit: string;
  readonly action: { readonly isPending: boolean; readonly error: unknown };
  readonly onSubmit: (wishes: TunnelWishes) => void;
  readonly onCancel: () => void;
}

const typed = (fields: FormData, name: string): string => String(fields.get(name) ?? "").trim();
const limitIn = (fields: FormData, name: LimitName): number | null => (typed(fields, name) === "" ? null : Number(typed(fields, name)));
const linesOf = (typed: string): string[] =>
  typed
    .split(/[\s,]+/)
    .map((line) => line.trim())
    .filter((line) => line !== "");

export const TunnelForm = ({ of, submit, action, onSubmit, onCancel }: TunnelFormProps) => {
  const may = useMay();
  const [servedBy, setServedBy] = useState<string>("device");
  const [picked, setPicked] = useState<string[]>([]);
  const [protocol, setProtocol] = useState<string>(of?.protocol ?? "http");
  const mayPublish = may("tunnel:publish");
  const isNew = of === undefined;
  const byDevice = isNew && servedBy === "device";
  const isTcp = protocol === "tcp" && (byDevice || !isNew);
  const modes = (isTcp ? text.tcpModeOptions : text.modeOptions).filter(([mode]) => mode !== "public" || mayPublish || of?.access.mode === "public");
  const send = (fields: FormData): void => {
    const [deviceId] = picked;
    const speaks = text.protocols.find(([each]) => each === protocol)?.[0] ?? "http";
    const [hostname, service, until] = [typed(fields, "hostname"), typed(fields, "service"), typed(fields, "expiresAt")];
    onSubmit({
      name: typed(fields, "name"),
      hostname: hostname === "" || hostname === of?.hostname ? undefined : hostname,
      service: service === "" || service === of?.service ? undefined : service,
      access: {
        mode: text.modeOptions.find(([mode]) => mode === fields.get("mode"))?.[0] ?? "private",
        allow: linesOf(typed(fields, "allow")),
      },
      hostHeader: fields.get("hostHeader") === "service" ? "service" : "preserve",
      limits: {
        requestsPerMinute: limitIn(fields, "requestsPerMinute"),
        connections: limitIn(fields, "connections"),
        idleSeconds: limitIn(fields, "idleSeconds"),
      },
      expiresAt: until === "" ? null : new Date(until).toISOString(),
      device: byDevice && deviceId !== undefined ? { deviceId, targetPort: Number(fields.get("targetPort")), protocol: speaks } : undefined,
    });
  };
  return (
    <Form submit={submit} busy={action.isPending} error={action.error} onSubmit={send} onCancel={onCancel} disabled={byDevice && picked.length === 0}>
      {isNew && mayPublish ? (
        <Field label={text.servedBy}>
          {(id) => (
            <select id={id} value={servedBy} onChange={({ target }) => setServedBy(target.value)}>
              {text.servers.map(([value, word]) => (
                <option key={value} value={value}>
                  {word}
                </option>
              ))}
            </select>
          )}
        </Field>
      ) : null}
      {byDevice ? (
        <>
          <PickDevices label={text.device} picked={picked} onChange={(ids) => setPicked(ids.slice(-1))} />
          <TextField label={text.port} name="targetPort" type="number" required min={1} max={65_535} hint={text.portHint} />
          <SelectField
            label={text.protocol}
            name="protocol"
            defaultValue={protocol}
            onChange={({ target }) => setProtocol(target.value)}
            options={text.protocols}
            hint={text.protocolHint}
          />
        </>
      ) : null}
      <TextField label={text.name} name="name" required maxLength={60} defaultValue={of?.name} />
      {isNew || of.deviceId === undefined ? null : (
        <TextField label={text.service} name="service" required maxLength={2_048} defaultValue={of.service} hint={text.serviceHint} />
      )}
      {isTcp ? null : <TextField label={text.label} name="hostname" maxLength={253} defaultValue={of?.hostname} hint={text.labelHint} />}
      <SelectField label={text.access} name="mode" defaultValue={of?.access.mode ?? "private"} options={modes} />
      <Field label={text.allow} hint={isTcp ? text.tcpAllowHint : text.allowHint}>
        {(id, hintId) => (
          <textarea id={id} aria-describedby={hintId} name="allow" rows={2} maxLength={4_000} defaultValue={of?.access.allow.join("\n")} spellCheck={false} />
        )}
      </Field>
      <TextField
        label={text.expires}
        name="expiresAt"
        type="datetime-local"
        hint={text.expiresHint}
        defaultValue={of?.expiresAt == null ? undefined : localTime(of.expiresAt)}
      />
      {isTcp ? null : <SelectField label={text.hostHeader} name="hostHeader" defaultValue={of?.hostHeader} options={text.hosts} />}
      {LIMITS.map((name) => (
        <TextField
          key={name}
          label={text.limits[name].name}
          name={name}
          type="number"
          min={1}
          max={text.limits[name].most}
          hint={text.limits[name].hint}
          defaultValue={of?.limits[name] ?? undefined}
        />
      ))}
    </Form>
  );
};
