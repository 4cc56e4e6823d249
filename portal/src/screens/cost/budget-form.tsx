// The form of a budget, and its deletion.
import type { CostBudget } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { PickDevices } from "../../parts/selector-field.tsx";
import { Confirm, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { EditDialog } from "../../ui/edition.tsx";
import { wordsOf } from "../../ui/fields/trim-input.ts";
import css from "./cost.module.css";
import { fieldText, minorDigitsOf, minorOf } from "./money.ts";
import { text } from "./text.ts";

type Kind = CostBudget["scope"]["kind"];
type Threshold = Pick<CostBudget["thresholds"][number], "percent" | "basis">;
const KINDS = Object.entries(text.scopes) as [Kind, string][]; // as: the object's own
const MAX_FLEETS = 100;
const FIRST: readonly Threshold[] = [
  { percent: 50, basis: "actual" },
  { percent: 80, basis: "actual" },
  { percent: 100, basis: "actual" },
  { percent: 100, basis: "forecast" },
];

const percentsOf = (typed: FormDataEntryValue | null, basis: Threshold["basis"]): Threshold[] =>
  wordsOf(String(typed ?? "")).map((word) => ({ percent: Number(word.replace("%", "")), basis }));
const percentText = (thresholds: readonly Threshold[], basis: Threshold["basis"]): string =>
  thresholds
    .filter((each) => each.basis === basis)
    .map(({ percent }) => percent)
    .join(" ");

const scopeOf = (kind: Kind, fields: FormData, deviceIds: readonly string[]): CostBudget["scope"] => {
  if (kind === "fleet") return { kind, fleetId: String(fields.get("fleetId") ?? "") as never }; // as: the options are ids
  if (kind === "tag") return { kind, tag: String(fields.get("tag") ?? "").trim() };
  return kind === "devices" ? { kind, deviceIds: deviceIds as never[] } : { kind }; // as: picked from the list
};

const FleetField = ({ fleetId }: { readonly fleetId: string | undefined }) => {
  const fleets = useQuery(api.fleets.list.queryOptions({ pageSize: MAX_FLEETS, sort: "name" })).data?.items;
  if (fleets === undefined) return null;
  if (fleets.length === 0) return <p>{text.noFleet}</p>;
  return <SelectField label={text.fleet} name="fleetId" defaultValue={fleetId} options={fleets.map((fleet) => [fleet.fleetId, fleet.name] as const)} />;
};

interface BudgetFormProps {
  readonly currency: string;
  readonly stored: CostBudget | null;
  readonly onClose: () => void;
  readonly onRemove?: () => void;
}
export const BudgetForm = ({ currency, stored, onClose, onRemove }: BudgetFormProps) => {
  const minorDigits = minorDigitsOf(currency);
  const may = useMay()("cost:write");
  const [kind, setKind] = useState<Kind>(stored?.scope.kind ?? "all");
  const [deviceIds, setDeviceIds] = useState<readonly string[]>(stored?.scope.kind === "devices" ? stored.scope.deviceIds : []);
  const done = {
    onSuccess: async () => {
      await queryClient.invalidateQueries(api.costs.pathFilter());
      onClose();
    },
  };
  const create = useMutation(api.costs.createBudget.mutationOptions(done));
  const update = useMutation(api.costs.updateBudget.mutationOptions(done));
  const thresholds = stored?.thresholds ?? FIRST;
  const send = (fields: FormData): void => {
    const wishes = {
      name: String(fields.get("name")),
      amount: minorOf(String(fields.get("amount")), minorDigits),
      scope: scopeOf(kind, fields, deviceIds),
      thresholds: [...percentsOf(fields.get("actual"), "actual"), ...percentsOf(fields.get("forecast"), "forecast")],
    };
    if (stored === null) create.mutate(wishes);
    else update.mutate({ budgetId: stored.budgetId, version: stored.version, ...wishes });
  };
  return (
    <Form
      submit={stored === null ? text.createBudget : text.saveBudget}
      busy={create.isPending || update.isPending}
      error={create.error ?? update.error}
      disabled={!may || (kind === "devices" && deviceIds.length === 0)}
      onSubmit={send}
      onCancel={onClose}
      beside={
        onRemove === undefined || !may ? undefined : (
          <button type="button" data-kind="danger" onClick={onRemove}>
            {text.remove}
          </button>
        )
      }
    >
      <TextField label={text.name} name="name" required maxLength={100} defaultValue={stored?.name} />
      <div className={css["pair"]}>
        <TextField
          label={`${text.amount} (${currency})`}
          name="amount"
          required
          defaultValue={stored === null ? undefined : fieldText(stored.amount, minorDigits)}
        />
        <SelectField label={text.watches} name="kind" defaultValue={kind} options={KINDS} onChange={({ target }) => setKind(target.value as Kind)} />
      </div>
      {kind === "fleet" ? <FleetField fleetId={stored?.scope.kind === "fleet" ? stored.scope.fleetId : undefined} /> : null}
      {kind === "tag" ? (
        <TextField label={text.tag} name="tag" required maxLength={64} defaultValue={stored?.scope.kind === "tag" ? stored.scope.tag : undefined} />
      ) : null}
      {kind === "devices" ? <PickDevices picked={deviceIds} onChange={setDeviceIds} /> : null}
      <div className={css["pair"]}>
        <TextField label={text.tellAt} name="actual" hint={text.tellAtHint} maxLength={60} defaultValue={percentText(thresholds, "actual")} />
        <TextField label={text.tellForecast} name="forecast" hint={text.tellForecastHint} maxLength={60} defaultValue={percentText(thresholds, "forecast")} />
      </div>
    </Form>
  );
};

const RemoveBudget = ({ budgetId, onClose, onBack }: { readonly budgetId: string; readonly onClose: () => void; readonly onBack: () => void }) => {
  const remove = useMutation(
    api.costs.removeBudget.mutationOptions({
      onSuccess: async () => {
        onClose();
        await queryClient.invalidateQueries(api.costs.pathFilter());
      },
    }),
  );
  return (
    <Confirm title={text.removeTitle} open onClose={onBack} submit={text.remove} action={remove} onConfirm={() => remove.mutate({ budgetId })}>
      {text.removeText}
    </Confirm>
  );
};

export const EditBudget = ({ stored, onClose }: { readonly stored: CostBudget; readonly onClose: () => void }) => (
  <EditDialog
    stored={stored}
    form={(shown, onRemove) => <BudgetForm currency={shown.currency} stored={shown} onClose={onClose} onRemove={onRemove} />}
    remove={(onBack) => <RemoveBudget budgetId={stored.budgetId} onClose={onClose} onBack={onBack} />}
  />
);
