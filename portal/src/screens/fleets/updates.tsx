// How a fleet is updated: its policy, how far it is as that wants it, and its rollouts.
import type { Fleet, Rollout } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { numbers } from "../../ui/count.ts";
import { Form, SelectField } from "../../ui/dialog.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const MAX = 100;
const COLUMNS: readonly Column<Rollout>[] = [
  { title: text.name, phone: true, cell: ({ name }) => <span title={name}>{name}</span> },
  { title: text.state, width: "170px", phone: true, cell: ({ status }) => <Status status={status} /> },
  { title: text.progress, width: "110px", cell: ({ counts: { succeeded, total } }) => text.of(numbers.format(succeeded), numbers.format(total)) },
  { title: text.created, width: AGO_WIDTH, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

const Compliance = ({ fleetId }: Pick<Fleet, "fleetId">) => {
  const read = useQuery(api.fleets.summary.queryOptions({ fleetId }));
  return (
    <Loaded read={read}>
      {({ compliance }) =>
        compliance === null ? (
          <p className="muted">{text.noCompliance}</p>
        ) : (
          <p role="status">{text.compliance(compliance.have, compliance.devices, compliance.target)}</p>
        )
      }
    </Loaded>
  );
};

const Policy = ({ fleet: { fleetId, version, updatePolicyId } }: { readonly fleet: Fleet }) => {
  const policies = useQuery(api.rollouts.listPolicies.queryOptions({ sort: "name", pageSize: MAX }));
  const update = useMutation(api.fleets.update.mutationOptions({ onSuccess: () => queryClient.invalidateQueries(api.fleets.pathFilter()) }));
  return (
    <Loaded read={policies}>
      {({ items }) => (
        <Form
          submit={text.savePolicy}
          busy={update.isPending}
          error={update.error}
          onSubmit={(fields) => {
            const chosen = items.find((each) => each.updatePolicyId === fields.get("policy"))?.updatePolicyId ?? null;
            update.mutate({ fleetId, version, updatePolicyId: chosen });
          }}
        >
          <SelectField
            key={updatePolicyId}
            label={text.policy}
            name="policy"
            defaultValue={updatePolicyId ?? ""}
            options={[["", text.noPolicy], ...items.map((each) => [each.updatePolicyId, each.name] as const)]}
          />
        </Form>
      )}
    </Loaded>
  );
};

export const FleetUpdates = ({ fleet }: { readonly fleet: Fleet }) => {
  const may = useMay();
  const navigate = useNavigate();
  const { fleetId } = fleet;
  const list = usePages<Rollout>((page) => api.rollouts.list.queryOptions({ fleetId, page, pageSize: PAGE_SIZE }));
  return (
    <Panel title={text.updates}>
      <Compliance fleetId={fleetId} />
      {may("fleet:write") ? <Policy fleet={fleet} /> : null}
      <List
        label={text.rollouts}
        columns={COLUMNS}
        list={list}
        rows={3}
        fill={false}
        id={({ rolloutId }) => rolloutId}
        onOpen={({ rolloutId }) => void navigate({ to: "/rollouts/$rolloutId", params: { rolloutId } })}
        none={text.noRollouts}
      />
    </Panel>
  );
};
