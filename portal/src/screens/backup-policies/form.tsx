// The form of a backup policy, with a preview before anything is stored.
import type { BackupPolicy } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { api, mooring } from "../../api/client.ts";
import { PickDevices, PickFleets, PickTags } from "../../parts/selector-field.tsx";
import { Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { TimeZoneField } from "../../ui/fields/time-zone-field.tsx";
import { Preview } from "./preview.tsx";
import { SCHEDULES, text } from "./text.ts";

const RULES = text.rules.map(([rule]) => rule);
type Rule = (typeof RULES)[number];
const USUAL: Readonly<Record<Rule, number | null>> = { keepLast: 3, keepDaily: 7, keepWeekly: 4, keepMonthly: null };
const hereZone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone;

export type Wishes = Parameters<typeof mooring.backupPolicies.preview.query>[0] & { readonly name: string };

interface PolicyFormProps {
  readonly of?: BackupPolicy;
  readonly submit: string;
  readonly action: { readonly isPending: boolean; readonly error: unknown };
  readonly onSubmit: (wishes: Wishes) => void;
  readonly onCancel: () => void;
}

const numberIn = (fields: FormData, name: string): number | null => (fields.get(name) === "" ? null : Number(fields.get(name)));
const chosen = <T extends string>(fields: FormData, name: string, options: readonly (readonly [T, string])[]): T | undefined =>
  options.find(([value]) => value === fields.get(name))?.[0];

export const PolicyForm = ({ of, submit, action, onSubmit, onCancel }: PolicyFormProps) => {
  const around = useRef<HTMLDivElement>(null);
  const [target, setTarget] = useState({
    deviceIds: [...(of?.target.deviceIds ?? [])],
    fleetIds: [...(of?.target.fleetIds ?? [])],
    tags: [...(of?.target.tags ?? [])],
  });
  const destinations = useQuery(api.backupDestinations.list.queryOptions({ pageSize: 100, sort: "name" })).data?.items ?? [];
  const preview = useMutation({ mutationFn: (wishes: Wishes) => mooring.backupPolicies.preview.query(wishes) });
  const wishesOf = (fields: FormData): Wishes => {
    const [missedRun, consistency] = [chosen(fields, "missedRun", text.missedWords), chosen(fields, "consistency", text.consistencies)];
    const destinationId = String(fields.get("destinationId"));
    return {
      name: String(fields.get("name")),
      schedule: String(fields.get("schedule")).trim(),
      timezone: String(fields.get("timezone")),
      target: { ...target, appIds: [...(of?.target.appIds ?? [])] },
      destinationId: destinationId === "" ? null : destinationId,
      // Rules that this form does not show stay as they are.
      retention: { ...of?.retention, ...Object.fromEntries(RULES.map((rule) => [rule, numberIn(fields, rule)])) },
      beforeUpdates: fields.get("beforeUpdates") !== null,
      ...(missedRun === undefined ? {} : { missedRun }),
      ...(consistency === undefined ? {} : { consistency }),
    };
  };
  const show = (): void => {
    const form = around.current?.closest("form");
    if (form?.reportValidity() === true) preview.mutate(wishesOf(new FormData(form)));
  };
  return (
    <Form
      submit={submit}
      busy={action.isPending}
      error={action.error}
      onSubmit={(fields) => onSubmit(wishesOf(fields))}
      onCancel={onCancel}
      beside={
        <button type="button" disabled={preview.isPending} onClick={show}>
          {text.preview}
        </button>
      }
    >
      <div ref={around} className="stack">
        <TextField label={text.name} name="name" required maxLength={100} defaultValue={of?.name} />
        <TextField label={text.schedule} name="schedule" required maxLength={120} defaultValue={of?.schedule ?? SCHEDULES[0][0]} hint={text.scheduleHint} />
        <TimeZoneField label={text.timezone} name="timezone" required defaultValue={of?.timezone ?? hereZone()} />
        <fieldset className="stack">
          <legend>{text.what}</legend>
          <p className="muted">{text.whatHint}</p>
          <PickDevices picked={target.deviceIds} onChange={(deviceIds) => setTarget({ ...target, deviceIds })} />
          <PickTags picked={target.tags} onChange={(tags) => setTarget({ ...target, tags })} />
          <PickFleets picked={target.fleetIds} onChange={(fleetIds) => setTarget({ ...target, fleetIds })} />
        </fieldset>
        <SelectField
          key={destinations.length}
          label={text.destination}
          name="destinationId"
          defaultValue={of?.destinationId ?? ""}
          options={[["", text.defaultDestination], ...destinations.map(({ destinationId, name }) => [destinationId, name] as const)]}
        />
        <fieldset className="stack">
          <legend>{text.keep}</legend>
          <p className="muted">{text.keepHint}</p>
          {text.rules.map(([rule, word]) => (
            <TextField
              key={rule}
              label={word}
              name={rule}
              type="number"
              min={1}
              max={1_000}
              defaultValue={(of === undefined ? USUAL[rule] : of.retention[rule]) ?? undefined}
            />
          ))}
        </fieldset>
        <SelectField label={text.missed} name="missedRun" defaultValue={of?.missedRun} options={text.missedWords} />
        <SelectField label={text.consistency} name="consistency" defaultValue={of?.consistency} options={text.consistencies} />
        <Check name="beforeUpdates" label={text.beforeUpdates} defaultChecked={of?.beforeUpdates ?? false} />
        {preview.error === null ? null : <Failure key={preview.submittedAt} error={preview.error} />}
        {preview.data === undefined ? null : <Preview of={preview.data} />}
      </div>
    </Form>
  );
};
