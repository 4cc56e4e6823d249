// The form of a rule. Before it is saved, somebody can see when it would have opened alerts.
import type { AlertRule } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type MouseEvent, useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { isComplete, type Selector, SelectorField } from "../../parts/selector-field.tsx";
import { Confirm, Field, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { EditDialog } from "../../ui/edition.tsx";
import { Check, Checks } from "../../ui/fields/checks.tsx";
import { SecondsField } from "../../ui/fields/seconds-field.tsx";
import css from "./alerts.module.css";
import { countsInWindow, METRICS, type Metric, OPERATORS, triable } from "./condition.ts";
import { Preview, type Trial } from "./preview.tsx";
import { SEVERITIES } from "./query.ts";
import { text } from "./text.ts";

const refresh = (): void => void queryClient.invalidateQueries(api.alerts.pathFilter());
const SECONDS = [0, 60, 300, 600, 1_800, 3_600, 14_400, 86_400];
const WINDOWS = [60, 300, 900, 1_800, 3_600];
const MAX_CHANNELS = 100;

type Operator = AlertRule["operator"];
type Severity = AlertRule["severity"];

const conditionOf = (fields: FormData) => {
  const clear = String(fields.get("clear") ?? "");
  return {
    operator: String(fields.get("operator")) as Operator, // as: the options say so
    threshold: Number(fields.get("threshold")),
    ...(clear === "" ? {} : { clearThreshold: Number(clear) }),
    forSeconds: Number(fields.get("for")),
    clearForSeconds: Number(fields.get("clearFor")),
  };
};
const wishesOf = (fields: FormData) => ({
  name: String(fields.get("name")),
  ...conditionOf(fields),
  ...(fields.has("window") ? { windowSeconds: Number(fields.get("window")) } : {}),
  cooldownSeconds: Number(fields.get("cooldown")),
  severity: String(fields.get("severity")) as Severity, // as: the options say so
  channelIds: fields.getAll("channel").map(String),
  autoResolve: fields.has("autoResolve"),
  enabled: fields.has("enabled"),
});

/** What most rules leave as it is. */
const More = ({ rule }: { readonly rule: AlertRule | null }) => {
  const channels = useQuery(api.alerts.listChannels.queryOptions({ sort: "name", pageSize: MAX_CHANNELS })).data?.items ?? [];
  return (
    <details>
      <summary>{text.more}</summary>
      <div className={css["more"]}>
        <div className={css["pair"]}>
          <TextField label={text.clearAt} name="clear" type="number" hint={text.clearAtHint} defaultValue={rule?.clearThreshold} />
          <SecondsField label={text.clearFor} name="clearFor" choices={SECONDS} zero={text.atOnce} defaultValue={rule?.clearForSeconds ?? 60} />
        </div>
        <SecondsField
          label={text.cooldown}
          name="cooldown"
          hint={text.cooldownHint}
          choices={SECONDS}
          zero={text.never}
          defaultValue={rule?.cooldownSeconds ?? 300}
        />
        {channels.length === 0 ? null : (
          <Checks label={text.channels} hint={text.channelsHint}>
            {channels.map(({ channelId, name }) => (
              <Check key={channelId} name="channel" value={channelId} label={name} defaultChecked={rule?.channelIds.includes(channelId) ?? false} />
            ))}
          </Checks>
        )}
        <Check name="autoResolve" label={text.autoResolve} defaultChecked={rule?.autoResolve ?? true} />
      </div>
    </details>
  );
};

interface FieldsProps {
  readonly rule: AlertRule | null;
  readonly metric: Metric;
  readonly onMetric: (metric: Metric) => void;
}
const Condition = ({ rule, metric, onMetric }: FieldsProps) => (
  <>
    {rule === null ? (
      <Field label={text.metric}>
        {(id) => (
          <select id={id} value={metric} onChange={({ target }) => onMetric(target.value as Metric)}>
            {Object.entries(METRICS).map(([value, word]) => (
              <option key={value} value={value}>
                {word}
              </option>
            ))}
          </select>
        )}
      </Field>
    ) : (
      <p>{rule.metric === "event" ? text.eventsOf(rule.eventType ?? "") : METRICS[rule.metric]}</p>
    )}
    {rule === null && metric === "event" ? <TextField label={text.eventType} name="eventType" required maxLength={100} placeholder="device.offline" /> : null}
    <div className={css["pair"]}>
      <SelectField label={text.operator} name="operator" defaultValue={rule?.operator ?? "gt"} options={Object.entries(OPERATORS)} />
      <Field label={text.threshold}>
        {(id) => <input id={id} name="threshold" type="number" step="any" required autoComplete="off" defaultValue={rule?.threshold} />}
      </Field>
      <SecondsField label={text.holds} name="for" choices={SECONDS} zero={text.atOnce} defaultValue={rule?.forSeconds ?? 0} />
      {countsInWindow(metric) ? <SecondsField label={text.window} name="window" choices={WINDOWS} defaultValue={rule?.windowSeconds ?? 900} /> : null}
      <SelectField
        label={text.severity}
        name="severity"
        defaultValue={rule?.severity ?? "warning"}
        options={SEVERITIES.map((severity) => [severity, severity] as const)}
      />
    </div>
  </>
);

const Change = ({ rule, onClose, onDelete }: { readonly rule: AlertRule | null; readonly onClose: () => void; readonly onDelete: () => void }) => {
  const [metric, setMetric] = useState<Metric>(rule?.metric ?? "device.cpu");
  const [scope, setScope] = useState<Selector | null>(rule?.scope ?? null);
  const [trial, setTrial] = useState<Trial | null>(null);
  const done = {
    onSuccess: () => {
      refresh();
      onClose();
    },
  };
  const create = useMutation(api.alerts.createRule.mutationOptions(done));
  const update = useMutation(api.alerts.updateRule.mutationOptions(done));
  const send = (fields: FormData): void => {
    const wishes = { ...wishesOf(fields), scope };
    if (rule !== null) update.mutate({ ruleId: rule.ruleId, version: rule.version, ...wishes });
    else create.mutate({ metric, ...(metric === "event" ? { eventType: String(fields.get("eventType")) } : {}), ...wishes });
  };
  const tried = triable(metric);
  const attempt = ({ currentTarget: { form } }: MouseEvent<HTMLButtonElement>): void => {
    if (form !== null && tried !== undefined && form.reportValidity()) setTrial({ metric: tried, ...conditionOf(new FormData(form)), scope });
  };
  return (
    <Form
      submit={rule === null ? text.createRule : text.save}
      busy={create.isPending || update.isPending}
      error={create.error ?? update.error}
      disabled={!isComplete(scope)}
      onSubmit={send}
      onCancel={onClose}
      beside={
        rule === null ? null : (
          <button type="button" data-kind="danger" onClick={onDelete}>
            {text.remove}
          </button>
        )
      }
    >
      <TextField label={text.name} name="name" required maxLength={100} defaultValue={rule?.name} />
      <Condition rule={rule} metric={metric} onMetric={setMetric} />
      <SelectorField label={text.devices} value={scope} onChange={setScope} />
      <Check name="enabled" label={text.enabled} defaultChecked={rule?.enabled ?? true} />
      <More rule={rule} />
      {tried === undefined ? (
        <p className="muted">{text.notTriable}</p>
      ) : (
        <div className="row">
          <button type="button" disabled={!isComplete(scope)} onClick={attempt}>
            {text.attempt}
          </button>
        </div>
      )}
      {trial === null ? null : <Preview trial={trial} />}
    </Form>
  );
};

const Remove = ({ of: { ruleId, name }, onBack, onClose }: { readonly of: AlertRule; readonly onBack: () => void; readonly onClose: () => void }) => {
  const remove = useMutation(
    api.alerts.removeRule.mutationOptions({
      onSuccess: () => {
        refresh();
        onClose();
      },
    }),
  );
  return (
    <Confirm title={text.removeTitle(name)} open onClose={onBack} submit={text.remove} action={remove} onConfirm={() => remove.mutate({ ruleId })}>
      {text.removeRule}
    </Confirm>
  );
};

export const RuleForm = ({ stored, onClose }: { readonly stored: AlertRule | null; readonly onClose: () => void }) =>
  stored === null ? (
    <Change rule={null} onClose={onClose} onDelete={onClose} />
  ) : (
    <EditDialog
      stored={stored}
      form={(rule, onDelete) => <Change rule={rule} onClose={onClose} onDelete={onDelete} />}
      remove={(onBack) => <Remove of={stored} onBack={onBack} onClose={onClose} />}
    />
  );
