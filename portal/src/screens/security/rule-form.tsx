// The form of a security rule. Built-in rules can be changed and turned off, but not deleted.
import type { SecurityRule } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Confirm, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { EditDialog } from "../../ui/edition.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { SecondsField } from "../../ui/fields/seconds-field.tsx";
import { blockable } from "./block.tsx";
import { MEANINGS, type SecurityType, TYPES } from "./meanings.ts";
import css from "./security.module.css";
import { text } from "./text.ts";
import { BLOCKABLE, SEVERITIES } from "./values.ts";

const WINDOWS = [60, 300, 900, 3_600, 86_400];
const BLOCKS = [900, 3_600, 86_400, 604_800, 2_592_000];
const refresh = (): Promise<void> => queryClient.invalidateQueries(api.security.pathFilter());

const wishesOf = (fields: FormData) => {
  const entityType = blockable(String(fields.get("block")));
  return {
    name: String(fields.get("name")),
    enabled: fields.has("enabled"),
    conditions: {
      count: Number(fields.get("count")),
      windowSeconds: Number(fields.get("window")),
      severity: String(fields.get("severity")) as SecurityRule["conditions"]["severity"], // as: the options say so
    },
    actions: { alert: fields.has("alert"), block: entityType === undefined ? null : { entityType, seconds: Number(fields.get("seconds")) } },
  };
};

const Fields = ({ rule }: { readonly rule: SecurityRule | null }) => (
  <>
    <TextField label={text.name} name="name" required maxLength={100} defaultValue={rule?.name} />
    {rule === null ? (
      <SelectField label={text.type} name="type" options={TYPES.map((type) => [type, MEANINGS[type]] as const)} />
    ) : (
      <p>
        {MEANINGS[rule.type]} <code>{rule.type}</code>
      </p>
    )}
    <div className={css["pair"]}>
      <TextField label={text.count} name="count" type="number" required min={1} max={100_000} defaultValue={rule?.conditions.count ?? 5} />
      <SecondsField label={text.within} name="window" choices={WINDOWS} defaultValue={rule?.conditions.windowSeconds ?? 300} />
      <SelectField
        label={text.severity}
        name="severity"
        defaultValue={rule?.conditions.severity ?? "medium"}
        options={SEVERITIES.map((severity) => [severity, severity] as const)}
      />
    </div>
    <div className={css["pair"]}>
      <SelectField
        label={text.blocks}
        name="block"
        hint={text.blocksHint}
        defaultValue={rule?.actions.block?.entityType ?? ""}
        options={[["", text.blockNobody], ...BLOCKABLE.map((each) => [each, text.about[each]] as const)]}
      />
      <SecondsField label={text.blockFor} name="seconds" choices={BLOCKS} defaultValue={rule?.actions.block?.seconds ?? 3_600} />
    </div>
    <div>
      <Check name="alert" label={text.alerts} defaultChecked={rule?.actions.alert ?? true} />
      <Check name="enabled" label={text.enabled} defaultChecked={rule?.enabled ?? true} />
    </div>
  </>
);

const Change = ({ rule, onClose, onDelete }: { readonly rule: SecurityRule | null; readonly onClose: () => void; readonly onDelete: () => void }) => {
  const done = {
    onSuccess: async () => {
      await refresh();
      onClose();
    },
  };
  const create = useMutation(api.security.createRule.mutationOptions(done));
  const update = useMutation(api.security.updateRule.mutationOptions(done));
  const send = (fields: FormData): void => {
    if (rule !== null) update.mutate({ securityRuleId: rule.id, version: rule.version, ...wishesOf(fields) });
    else create.mutate({ type: String(fields.get("type")) as SecurityType, ...wishesOf(fields) }); // as: the options say so
  };
  return (
    <Form
      submit={rule === null ? text.createRule : text.save}
      busy={create.isPending || update.isPending}
      error={create.error ?? update.error}
      onSubmit={send}
      onCancel={onClose}
      beside={
        rule === null || rule.builtIn ? null : (
          <button type="button" data-kind="danger" onClick={onDelete}>
            {text.remove}
          </button>
        )
      }
    >
      <Fields rule={rule} />
    </Form>
  );
};

const Remove = ({ of: { id: ruleId, name }, onBack, onClose }: { readonly of: SecurityRule; readonly onBack: () => void; readonly onClose: () => void }) => {
  const remove = useMutation(
    api.security.removeRule.mutationOptions({
      onSuccess: async () => {
        onClose();
        await refresh();
      },
    }),
  );
  return (
    <Confirm
      title={text.removeTitle(name)}
      open
      onClose={onBack}
      submit={text.remove}
      action={remove}
      onConfirm={() => remove.mutate({ securityRuleId: ruleId })}
    >
      {text.removeRule}
    </Confirm>
  );
};

export const RuleForm = ({ stored, onClose }: { readonly stored: SecurityRule | null; readonly onClose: () => void }) =>
  stored === null ? (
    <Change rule={null} onClose={onClose} onDelete={onClose} />
  ) : (
    <EditDialog
      stored={stored}
      form={(rule, onDelete) => <Change rule={rule} onClose={onClose} onDelete={onDelete} />}
      remove={(onBack) => <Remove of={stored} onBack={onBack} onClose={onClose} />}
    />
  );
