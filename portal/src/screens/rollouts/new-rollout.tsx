// Starts a rollout: first it shows what would happen, and those figures are what the person confirms.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { Dialog, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Preview } from "./preview.tsx";
import { text } from "./text.ts";

const MAX = 100;
type Wanted = Exclude<Parameters<typeof api.rollouts.preview.queryOptions>[0], symbol | undefined>;

const wantedOf = (fields: FormData): Wanted => {
  const targetVersion = String(fields.get("version") ?? "").trim();
  return {
    fleetId: String(fields.get("fleet")) as Wanted["fleetId"],
    updatePolicyId: String(fields.get("policy")) as NonNullable<Wanted["updatePolicyId"]>,
    ...(targetVersion === "" ? {} : { targetVersion }),
  };
};

export const NewRollout = ({ onClose }: { readonly onClose: () => void }) => {
  const navigate = useNavigate();
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const fleets = useQuery(api.fleets.list.queryOptions({ sort: "name", pageSize: MAX }));
  const policies = useQuery(api.rollouts.listPolicies.queryOptions({ sort: "name", pageSize: MAX }));
  const preview = useQuery({ ...api.rollouts.preview.queryOptions(wanted ?? ({} as Wanted)), enabled: wanted !== null, retry: false });
  const create = useMutation(
    api.rollouts.create.mutationOptions({
      onSuccess: async ({ rolloutId }) => {
        await queryClient.invalidateQueries(api.rollouts.pathFilter());
        await navigate({ to: "/rollouts/$rolloutId", params: { rolloutId } });
      },
    }),
  );
  const lists = fleets.error ?? policies.error;
  return (
    <Dialog title={text.create} open onClose={onClose}>
      {lists === null ? null : <Failure error={lists} />}
      <Form
        submit={wanted === null ? text.look : text.again}
        busy={preview.isFetching}
        error={preview.error}
        disabled={!fleets.data?.items.length || !policies.data?.items.length}
        onCancel={onClose}
        onSubmit={(fields) => setWanted(wantedOf(fields))}
      >
        {/* Figures of other choices would be no confirmation. */}
        <div className="stack" onInput={() => setWanted(null)}>
          <SelectField label={text.fleet} name="fleet" options={(fleets.data?.items ?? []).map(({ fleetId, name }) => [fleetId, name] as const)} />
          <SelectField
            label={text.policy}
            name="policy"
            options={(policies.data?.items ?? []).map(({ updatePolicyId, name }) => [updatePolicyId, name] as const)}
          />
          <TextField label={text.version} name="version" maxLength={64} hint={text.versionHint} />
        </div>
      </Form>
      {wanted === null || preview.data === undefined ? null : (
        <>
          <Preview of={preview.data} />
          {create.error === null ? null : <Failure error={create.error} />}
          <div className="row">
            <button
              type="button"
              data-kind="primary"
              disabled={create.isPending || preview.isFetching}
              onClick={() => create.mutate({ ...wanted, start: true })}
            >
              {text.begin}
            </button>
            <button type="button" disabled={create.isPending} onClick={() => create.mutate(wanted)}>
              {text.draft}
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
};
