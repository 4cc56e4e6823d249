// The form of a webhook. The values of its headers are never shown, so they are typed again or stay.
import type { Webhook } from "@mooring/client";
import { useState } from "react";
import { Field, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { EventsField } from "./events-field.tsx";
import { text } from "./text.ts";

export interface WebhookWishes {
  readonly url: string;
  readonly events: string[];
  readonly description: string;
  readonly format: Webhook["format"];
  readonly maxPerSecond: number;
  /** Undefined: as they are. */
  readonly headers?: Record<string, string>;
  /** Undefined: the gateway makes one. */
  readonly secret?: string;
}

export interface WebhookFormProps {
  /** Undefined for a new webhook. */
  readonly of?: Webhook;
  readonly submit: string;
  readonly action: { readonly isPending: boolean; readonly error: unknown };
  readonly onSubmit: (wishes: WebhookWishes) => void;
  readonly onCancel: () => void;
}

/** A line without a colon is a name without a value, which the gateway explains or takes. */
const headersOf = (typed: string): Record<string, string> =>
  Object.fromEntries(
    typed
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => {
        const [name = "", ...value] = line.split(":");
        return [name.trim(), value.join(":").trim()];
      }),
  );

const textIn = (fields: FormData, name: string): string => String(fields.get(name) ?? "");

export const WebhookForm = ({ of, submit, action, onSubmit, onCancel }: WebhookFormProps) => {
  const [events, setEvents] = useState<string[]>(of?.events ?? []);
  const send = (fields: FormData): void => {
    const [typed, secret] = [textIn(fields, "headers"), textIn(fields, "secret")];
    const headers = typed.trim() !== "" || fields.get("noHeaders") !== null ? { headers: headersOf(typed) } : {};
    onSubmit({
      url: textIn(fields, "url").trim(),
      events,
      description: textIn(fields, "description"),
      format: textIn(fields, "format") === "cloudevents" ? "cloudevents" : "standard",
      maxPerSecond: Number(fields.get("maxPerSecond")),
      ...headers,
      ...(secret === "" ? {} : { secret }),
    });
  };
  const hasHeaders = of !== undefined && of.headerNames.length > 0;
  return (
    <Form submit={submit} busy={action.isPending} error={action.error} onSubmit={send} onCancel={onCancel} disabled={events.length === 0}>
      <TextField label={text.url} name="url" type="url" required maxLength={2_048} defaultValue={of?.url} placeholder="https://" hint={text.urlHint} />
      <EventsField picked={events} onChange={setEvents} />
      <TextField label={text.description} name="description" maxLength={500} defaultValue={of?.description} />
      <SelectField label={text.format} name="format" defaultValue={of?.format} options={text.formats} />
      <Field label={text.headers} hint={hasHeaders ? text.headersKept(of.headerNames) : text.headersHint}>
        {(id, hintId) => <textarea id={id} aria-describedby={hintId} name="headers" rows={2} maxLength={12_000} autoComplete="off" spellCheck={false} />}
      </Field>
      {hasHeaders ? <Check name="noHeaders" label={text.headersNone} /> : null}
      <TextField label={text.rate} name="maxPerSecond" type="number" required min={1} max={50} defaultValue={of?.maxPerSecond ?? 10} />
      {of === undefined ? <TextField label={text.secret} name="secret" type="password" maxLength={256} hint={text.secretHint} /> : null}
    </Form>
  );
};
