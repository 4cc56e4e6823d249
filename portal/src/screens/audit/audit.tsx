// The audit log: who changed what, when and from where, newest first, with the chosen record beside the list.
import type { AuditLog } from "@mooring/client";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { given } from "../../api/search.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { fromOf, SPANS } from "../../ui/since.ts";
import { Split } from "../../ui/split.tsx";
import { Status } from "../../ui/status.tsx";
import { WHEN_WIDTH, When } from "../../ui/time.tsx";
import { Exports } from "./exports.tsx";
import { AuditRecord, actorName } from "./record.tsx";
import { readAuditSearch } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/audit");

const COLUMNS: readonly Column<AuditLog>[] = [
  { title: "When", width: WHEN_WIDTH, phone: true, cell: ({ at }) => <When at={at} /> },
  { title: "Who", width: "minmax(90px, 1.2fr)", phone: true, cell: ({ actor }) => actorName(actor) },
  { title: "Action", width: "minmax(90px, 1.2fr)", phone: true, cell: ({ action }) => <code>{action}</code> },
  { title: "Resource", width: "minmax(80px, 1.2fr)", cell: ({ resource: { type, id } }) => <span className="mono muted">{id ?? type}</span> },
  {
    title: "Outcome",
    width: "90px",
    cell: ({ outcome }) => <Status status={outcome === "success" ? "ok" : "rejected"} word={text.outcomes[outcome]} />,
  },
  { title: "Address", width: "minmax(70px, 0.8fr)", cell: ({ actor }) => <span className="muted">{actor.ip}</span> },
];
/** Beside an open record. */
const FEWER = COLUMNS.filter(({ phone }) => phone === true);

const distinct = (values: readonly (string | null)[]): readonly string[] => [...new Set(values.filter((value) => value !== null && value !== ""))] as string[];

/** Suggests what the newest records name. */
const useFilterKeys = (newest: readonly AuditLog[] | undefined): readonly FilterKey[] =>
  useMemo(() => {
    const known = (of: (log: AuditLog) => string | null) => distinct((newest ?? []).map(of));
    return [
      { key: "actor", name: "actor", values: known(({ actor }) => actor.id) },
      { key: "action", name: "action", values: known(({ action }) => action) },
      { key: "resource", name: "resource", values: known(({ resource }) => resource.type) },
      { key: "since", name: "since", values: SPANS },
    ];
  }, [newest]);

export const AuditScreen = () => {
  const { record, ...filters } = route.useSearch();
  const navigate = useNavigate();
  const { actor, action, resource, since } = filters;
  const from = useMemo(() => fromOf(since), [since]);
  const query = given({ actor, action, resource, from });
  const list = useCursorList<AuditLog>(api.audit.list.infiniteQueryOptions({ ...query, pageSize: PAGE_SIZE }, fromCursor));
  const keys = useFilterKeys(list.read.data?.items as readonly AuditLog[] | undefined);
  const setFilters = useCallback((next: Filters) => void navigate({ to: "/audit", search: readAuditSearch(next), replace: true }), [navigate]);
  const open = useCallback(
    (auditId?: string): void => void navigate({ to: "/audit", search: (before) => readAuditSearch({ ...before, record: auditId }) }),
    [navigate],
  );
  const close = useCallback(() => open(), [open]);
  return (
    <Page title={text.title} fill actions={<Exports filters={query} />}>
      <FilterBar label={text.filter} keys={keys} filters={filters} onChange={setFilters} />
      <Split
        onClose={close}
        detail={record === undefined ? null : <AuditRecord key={record} auditId={record} onClose={close} />}
        list={
          <FilteredList
            label={text.title}
            columns={record === undefined ? COLUMNS : FEWER}
            list={list}
            id={({ auditId }) => auditId}
            onOpen={({ auditId }) => open(auditId)}
            opened={record}
            filters={filters}
            onClear={() => setFilters({})}
            noMatch={text.noMatch}
            none={text.none}
          />
        }
      />
    </Page>
  );
};
