// The domains of the tenant: which serve visitors, and which wait for a record.
import type { CustomDomainWithActors as CustomDomain } from "@mooring/client";
import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { given, oneOf, readNetworkSearch } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import { Dialog, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { STATUSES, text } from "./text.ts";

const route = getRouteApi("/network/domains");
const KEYS: readonly FilterKey[] = [{ key: "status", name: "status", values: STATUSES }];

const COLUMNS: readonly Column<CustomDomain>[] = [
  { title: text.name, phone: true, cell: ({ displayName }) => <span title={displayName}>{displayName}</span> },
  { title: text.status, width: "minmax(160px, 0.7fr)", phone: true, cell: ({ status }) => <Status status={status} word={text.stateOf(status)} /> },
  { title: text.leads, cell: ({ target }) => (target === null ? text.nowhere : text.kinds[target.kind]) },
  { title: text.certificate, width: "120px", cell: ({ certificate: { status } }) => (status === "none" ? "" : <Status status={status} />) },
  { title: text.until, width: AGO_WIDTH, cell: ({ certificate: { notAfter } }) => (notAfter === null ? "" : <Ago at={notAfter} />) },
];

const MOST_APPS = 100;
/** The apps that a domain can lead to, by name. */
export const useAppOptions = (): readonly (readonly [value: string, word: string])[] => {
  const apps = useQuery(api.apps.list.queryOptions({ sort: "name", pageSize: MOST_APPS })).data?.items ?? [];
  return [["", text.nowhere] as const, ...apps.map(({ appId, name }) => [appId, name] as const)];
};
export const targetIn = (fields: FormData): { kind: "app"; id: string } | null => {
  const id = String(fields.get("target"));
  return id === "" ? null : { kind: "app", id };
};

const Create = ({ onClose }: { readonly onClose: () => void }) => {
  const navigate = useNavigate();
  const options = useAppOptions();
  const create = useMutation(
    api.domains.create.mutationOptions({
      onSuccess: async ({ domainId }) => {
        await queryClient.invalidateQueries(api.domains.pathFilter());
        await navigate({ to: "/network/domains/$domainId", params: { domainId } });
      },
    }),
  );
  return (
    <Dialog title={text.create} open onClose={onClose}>
      <Form
        submit={text.create}
        busy={create.isPending}
        error={create.error}
        onCancel={onClose}
        onSubmit={(fields) => create.mutate({ hostname: String(fields.get("hostname")).trim(), target: targetIn(fields) })}
      >
        <TextField label={text.name} name="hostname" required maxLength={1_024} placeholder="photos.example.com" hint={text.nameHint} />
        <SelectField key={options.length} label={text.leads} name="target" options={options} />
      </Form>
    </Dialog>
  );
};

export const DomainsScreen = () => {
  const { status: named, q } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const [creates, setCreates] = useState(false);
  const filters = given({ q, status: oneOf(named, STATUSES) });
  const list = usePages<CustomDomain>((page) =>
    api.domains.list.queryOptions({ ...filters, page, pageSize: PAGE_SIZE }, { placeholderData: keepPreviousData }),
  );
  const setFilters = useCallback((next: Filters) => void navigate({ to: "/network/domains", search: readNetworkSearch(next), replace: true }), [navigate]);
  const create = may("domain:write") ? (
    <button type="button" data-kind="primary" onClick={() => setCreates(true)}>
      {text.create}
    </button>
  ) : undefined;
  const isEmpty = list.count === 0 && Object.keys(filters).length === 0;
  return (
    <Page
      title={text.title}
      fill
      beside={<span className="muted">{list.read.data === undefined ? "" : text.total(list.count)}</span>}
      actions={isEmpty ? undefined : create}
    >
      <FilterBar label={text.filter} keys={KEYS} filters={filters} onChange={setFilters} />
      <FilteredList
        label={text.title}
        columns={COLUMNS}
        list={list}
        rows={6}
        id={({ domainId }) => domainId}
        onOpen={({ domainId }) => void navigate({ to: "/network/domains/$domainId", params: { domainId } })}
        filters={filters}
        onClear={() => setFilters({})}
        noMatch={text.noMatch}
        none={text.none}
        action={create}
      />
      {creates ? <Create onClose={() => setCreates(false)} /> : null}
    </Page>
  );
};
