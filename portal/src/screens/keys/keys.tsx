// The API keys of the tenant, newest first, with the chosen one beside the list.
import type { ApiKeyWithCreator } from "@mooring/client";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { given } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import { selectorText } from "../../parts/selector-field.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Split } from "../../ui/split.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { CreateKey } from "./create.tsx";
import { Key } from "./key.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/keys");

const COLUMNS: readonly Column<ApiKeyWithCreator>[] = [
  { title: "Name", width: "minmax(110px, 1.6fr)", phone: true, cell: ({ name }) => name },
  {
    title: "Key",
    width: "190px",
    cell: ({ prefix, last4 }) => (
      <span className="mono muted">
        {prefix}…{last4}
      </span>
    ),
  },
  { title: "State", width: "96px", phone: true, cell: ({ status }) => <Status status={status} /> },
  { title: "Role", width: "80px", cell: ({ role }) => role },
  { title: "Permissions", cell: ({ scopes }) => (scopes.length === 0 ? text.allScopes : text.scopes(scopes.length)) },
  { title: "Devices", cell: ({ selector }) => selectorText(selector) },
  { title: "Expires", width: AGO_WIDTH, cell: ({ expiresAt }) => (expiresAt === null ? <span className="muted">{text.never}</span> : <Ago at={expiresAt} />) },
  { title: "Last use", width: AGO_WIDTH, phone: true, cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
];
/** Beside an open key. */
const FEWER = COLUMNS.filter(({ phone }) => phone === true);

export const KeysScreen = () => {
  const { key } = route.useSearch();
  const navigate = useNavigate();
  const mayWrite = useMay()("api_key:write");
  const [creating, setCreating] = useState(false);
  const list = usePages<ApiKeyWithCreator>((page) => api.apiKeys.list.queryOptions({ page, pageSize: PAGE_SIZE }));
  const open = useCallback((keyId?: string): void => void navigate({ to: "/keys", search: given({ key: keyId }) }), [navigate]);
  const close = useCallback(() => open(), [open]);
  const create = mayWrite ? (
    <button type="button" data-kind="primary" onClick={() => setCreating(true)}>
      {text.create}
    </button>
  ) : undefined;
  return (
    <Page
      title={text.title}
      fill
      beside={<span className="muted">{list.read.data === undefined ? "" : text.total(list.count)}</span>}
      actions={list.count > 0 ? create : undefined}
    >
      <Split
        onClose={close}
        detail={key === undefined ? null : <Key key={key} keyId={key} onClose={close} />}
        list={
          <List
            label={text.title}
            columns={key === undefined ? COLUMNS : FEWER}
            list={list}
            rows={8}
            id={({ keyId }) => keyId}
            onOpen={({ keyId }) => open(keyId)}
            opened={key}
            none={text.none}
            action={create}
          />
        }
      />
      {creating ? <CreateKey onClose={() => setCreating(false)} /> : null}
    </Page>
  );
};
