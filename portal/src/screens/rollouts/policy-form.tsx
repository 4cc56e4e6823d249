// The form of an update policy, which shows what it would do before anything is stored.
import type { UpdatePolicy } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { api, mooring } from "../../api/client.ts";
import { Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { TimeZoneField } from "../../ui/fields/time-zone-field.tsx";
import { type PolicyWishes, phasesText, shownOf, wishesIn } from "./policy-fields.ts";
import { Preview } from "./preview.tsx";
import { text } from "./text.ts";

const MAX = 100;
const hereZone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone;
const pairs = <K extends string>(words: Readonly<Record<K, string>>): readonly (readonly [K, string])[] => Object.entries(words) as [K, string][]; // as: its own keys

interface PolicyFormProps {
  readonly of?: UpdatePolicy;
  readonly submit: string;
  readonly action: { readonly isPending: boolean; readonly error: unknown };
  readonly onSubmit: (wishes: PolicyWishes) => void;
  readonly onCancel: () => void;
}

const Subject = () => {
  const templates = useQuery(api.apps.templates.queryOptions({ pageSize: MAX })).data?.items ?? [];
  return (
    <>
      <SelectField
        key={templates.length}
        label={text.subject}
        name="template"
        options={[["", text.subjects.agent], ...templates.map(({ id, name }) => [id, name] as const)]}
      />
      <TextField label={text.channel} name="channel" maxLength={64} defaultValue="stable" hint={text.channelHint} />
    </>
  );
};

const Risk = ({ of }: { readonly of: UpdatePolicy | undefined }) => {
  const shown = shownOf(of?.phases);
  return (
    <>
      <TextField
        label={text.phases}
        name="phases"
        required
        maxLength={200}
        defaultValue={of === undefined ? "5, 25 %, 75 %" : phasesText(of.phases)}
        hint={text.phasesHint}
      />
      <TextField label={text.minSuccess} name="minSuccess" type="number" required min={1} max={100} defaultValue={shown.minSuccessPercent} />
      <TextField label={text.soak} name="soak" type="number" required min={0} max={10_080} defaultValue={shown.soakMinutes} />
      <TextField label={text.parallel} name="parallel" type="number" required min={1} max={500} defaultValue={of?.maxParallel ?? 50} />
      <TextField label={text.threshold} name="threshold" type="number" required min={1} max={100} defaultValue={of?.failureThreshold.percent ?? 10} />
      <SelectField label={text.onFailure} name="onFailure" defaultValue={of?.onFailure} options={pairs(text.onFailures)} />
      <Check name="approval" label={text.approval} defaultChecked={of?.approval.required ?? false} />
      <Check name="approvalEach" label={text.approvalEach} defaultChecked={shown.requireApproval} />
    </>
  );
};

const When = ({ of }: { readonly of: UpdatePolicy | undefined }) => {
  const window = of?.maintenanceWindows[0];
  return (
    <>
      <TextField label={text.window} name="cron" maxLength={100} defaultValue={window?.cron} hint={text.windowHint} />
      <TextField label={text.duration} name="duration" type="number" required min={15} max={1_440} defaultValue={window?.durationMinutes ?? 120} />
      <TimeZoneField label={text.zone} name="zone" required defaultValue={window?.timezone ?? hereZone()} />
      <SelectField label={text.offline} name="offline" defaultValue={of?.offlinePolicy} options={pairs(text.offlines)} />
      <Check name="follow" label={text.follow} defaultChecked={of?.newDevices === "follow"} />
      <Check name="enabled" label={text.enabled} defaultChecked={of?.enabled ?? true} />
    </>
  );
};

export const PolicyForm = ({ of, submit, action, onSubmit, onCancel }: PolicyFormProps) => {
  const around = useRef<HTMLDivElement>(null);
  const [fault, setFault] = useState(false);
  const fleets = useQuery(api.fleets.list.queryOptions({ sort: "name", pageSize: MAX })).data?.items ?? [];
  const preview = useMutation({
    mutationFn: ({ wishes: { name: _, description: _d, enabled: _e, ...policy }, fleetId }: { readonly wishes: PolicyWishes; readonly fleetId: string }) =>
      mooring.rollouts.previewPolicy.query({ policy, ...(fleetId === "" ? {} : { fleetId }) }),
  });
  const read = (fields: FormData): PolicyWishes | null => {
    const wishes = wishesIn(fields, of);
    setFault(wishes === null);
    return wishes;
  };
  const show = (): void => {
    const form = around.current?.closest("form");
    if (form?.reportValidity() !== true) return;
    const fields = new FormData(form);
    const wishes = read(fields);
    if (wishes !== null) preview.mutate({ wishes, fleetId: String(fields.get("previewFleet") ?? "") });
  };
  return (
    <Form
      submit={submit}
      busy={action.isPending}
      error={action.error}
      onCancel={onCancel}
      onSubmit={(fields) => {
        const wishes = read(fields);
        if (wishes !== null) onSubmit(wishes);
      }}
      beside={
        <button type="button" disabled={preview.isPending} onClick={show}>
          {text.look}
        </button>
      }
    >
      <div ref={around} className="stack" onInput={preview.reset}>
        <TextField label={text.name} name="name" required maxLength={100} defaultValue={of?.name} />
        {of === undefined ? <Subject /> : null}
        <TextField label={text.version} name="version" maxLength={64} defaultValue={of?.targetVersion ?? undefined} hint={text.versionHint} />
        <Risk of={of} />
        <When of={of} />
        <SelectField
          key={fleets.length}
          label={text.previewFleet}
          name="previewFleet"
          options={[["", text.noPreviewFleet], ...fleets.map(({ fleetId, name }) => [fleetId, name] as const)]}
        />
      </div>
      {fault ? <p role="alert">{text.phasesFault}</p> : null}
      {preview.error === null ? null : <Failure key={preview.submittedAt} error={preview.error} />}
      {preview.data === undefined ? null : <Preview of={preview.data} />}
    </Form>
  );
};
