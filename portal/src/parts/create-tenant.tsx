// The form that creates a tenant, whose owner the person becomes.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client.ts";
import { Field, Form } from "../ui/dialog.tsx";

/** A name as the tenant's part of URLs: `Café Nord` becomes `cafe-nord`. */
const slugOf = (name: string): string =>
  name
    .normalize("NFD")
    .toLowerCase()
    .replace(/[^a-z0-9\s-]/g, "")
    .trim()
    .replace(/[\s-]+/g, "-")
    .slice(0, 40);

interface CreateTenantProps {
  readonly userId: string;
  readonly onCreated: (tenant: { readonly tenantId: string }) => void | Promise<void>;
}

export const CreateTenant = ({ userId, onCreated }: CreateTenantProps) => {
  const [name, setName] = useState("");
  const [slug, setSlug] = useState<string | null>(null);
  const create = useMutation(api.tenants.create.mutationOptions({ onSuccess: onCreated }));
  return (
    <>
      <p className="muted">A tenant holds your devices and the people you work with. You become its owner.</p>
      <Form
        submit="Create tenant"
        busy={create.isPending}
        error={create.error}
        onSubmit={() => create.mutate({ name: name.trim(), slug: slug ?? slugOf(name), userId })}
      >
        <Field label="Name">
          {(id) => <input id={id} value={name} required maxLength={100} autoComplete="off" onChange={(event) => setName(event.target.value)} />}
        </Field>
        <Field label="Short name" hint="For URLs: 3 to 40 characters of a-z, 0-9 and -.">
          {(id, hintId) => (
            <input
              id={id}
              aria-describedby={hintId}
              value={slug ?? slugOf(name)}
              required
              minLength={3}
              maxLength={40}
              autoComplete="off"
              onChange={(event) => setSlug(event.target.value)}
            />
          )}
        </Field>
      </Form>
    </>
  );
};
