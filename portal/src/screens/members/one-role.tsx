// One role: its permissions by what they concern, to read or to change, or a new role.
import type { Permission, Role } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { inWords } from "../../../../protocol/kit/words.ts";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Confirm, Dialog, Form, TextField } from "../../ui/dialog.tsx";
import { Check, Checks } from "../../ui/fields/checks.tsx";
import { Facts, Loaded, Skeleton } from "../../ui/parts.tsx";
import css from "./members.module.css";
import { text } from "./text.ts";

const refresh = (): void => void queryClient.invalidateQueries(api.roles.pathFilter());

/** By resource, in the order of the catalogue. */
const groupsOf = (catalogue: readonly Permission[]): readonly (readonly [string, readonly Permission[]])[] => {
  const groups = new Map<string, Permission[]>();
  for (const each of catalogue) groups.set(each.resource, [...(groups.get(each.resource) ?? []), each]);
  return [...groups];
};
const wordOf = (resource: string): string => inWords(resource).replace(/^./, (first) => first.toUpperCase());

interface ChangeProps {
  readonly role: Role | null;
  readonly catalogue: readonly Permission[];
  readonly onClose: () => void;
  readonly onDelete: () => void;
}

const Change = ({ role, catalogue, onClose, onDelete }: ChangeProps) => {
  const done = {
    onSuccess: () => {
      refresh();
      onClose();
    },
  };
  const create = useMutation(api.roles.create.mutationOptions(done));
  const update = useMutation(api.roles.update.mutationOptions(done));
  const [empty, setEmpty] = useState(false);
  const send = (fields: FormData): void => {
    const permissions = fields.getAll("permission").map(String);
    setEmpty(permissions.length === 0);
    if (permissions.length === 0) return;
    const content = { name: String(fields.get("name")), description: String(fields.get("description")), permissions };
    if (role === null) create.mutate(content);
    else update.mutate({ roleId: role.roleId, version: role.version, ...content });
  };
  return (
    <Form
      submit={role === null ? text.createRole : text.save}
      busy={create.isPending || update.isPending}
      error={create.error ?? update.error}
      onSubmit={send}
      onCancel={onClose}
      beside={
        role === null ? null : (
          <button type="button" data-kind="danger" onClick={onDelete}>
            {text.deleteRole}
          </button>
        )
      }
    >
      <TextField label={text.roleName} name="name" required maxLength={100} defaultValue={role?.name} />
      <TextField label={text.description} name="description" maxLength={500} defaultValue={role?.description} />
      <div className={css["groups"]}>
        {groupsOf(catalogue).map(([resource, permissions]) => (
          <Checks key={resource} label={wordOf(resource)}>
            {permissions.map(({ key, description, risk }) => (
              <Check
                key={key}
                name="permission"
                value={key}
                label={description}
                hint={risk === "high" ? `${key}, ${text.risky}` : key}
                defaultChecked={role?.permissions.includes(key) ?? false}
              />
            ))}
          </Checks>
        ))}
      </div>
      {empty ? <p role="alert">{text.pickOne}</p> : null}
    </Form>
  );
};

const Shown = ({ role, catalogue }: { readonly role: Role; readonly catalogue: readonly Permission[] }) => (
  <>
    {role.description === "" ? null : <p>{role.description}</p>}
    {role.builtIn ? <p className="muted">{text.immutable}</p> : null}
    <Facts
      of={Object.fromEntries(
        groupsOf(catalogue.filter(({ key }) => role.permissions.includes(key))).map(([resource, permissions]) => [
          wordOf(resource),
          permissions.map(({ description }) => description).join("; "),
        ]),
      )}
    />
  </>
);

export const OneRole = ({ roleId, onClose }: { readonly roleId: string | null; readonly onClose: () => void }) => {
  const may = useMay();
  const [deletes, setDeletes] = useState(false);
  const catalogue = useQuery({ ...api.roles.permissions.queryOptions({}), staleTime: Number.POSITIVE_INFINITY });
  const read = useQuery({ ...api.roles.get.queryOptions({ roleId: roleId ?? "" }), enabled: roleId !== null });
  const remove = useMutation(
    api.roles.remove.mutationOptions({
      onSuccess: () => {
        refresh();
        onClose();
      },
    }),
  );
  const role = read.data ?? null;
  if (deletes && role !== null)
    return (
      <Confirm
        title={text.deleteTitle(role.name)}
        open
        onClose={() => setDeletes(false)}
        submit={text.deleteRole}
        action={remove}
        onConfirm={() => remove.mutate({ roleId: role.roleId })}
      >
        {text.deleteText}
      </Confirm>
    );
  const changes = may("role:write") && role?.builtIn !== true;
  return (
    <Dialog title={roleId === null ? text.createRole : (role?.name ?? text.tabs.roles)} open onClose={onClose}>
      <Loaded read={roleId === null ? { ...catalogue, data: { role: null } } : { ...read, data: role === null ? undefined : { role } }}>
        {(one) => {
          const known = catalogue.data?.items;
          if (known === undefined) return <Skeleton rows={6} />;
          if (changes) return <Change role={one.role} catalogue={known} onClose={onClose} onDelete={() => setDeletes(true)} />;
          return one.role === null ? null : <Shown role={one.role} catalogue={known} />;
        }}
      </Loaded>
    </Dialog>
  );
};
