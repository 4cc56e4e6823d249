// The enrollment tokens of the tenant, with what is left of each.
import type { EnrollmentToken } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { PageIcon } from "../../ui/icon.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Copyable, Facts, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago, useNow } from "../../ui/time.tsx";
import { CreateToken } from "./create-token.tsx";
import css from "./pair.module.css";
import { readPairSearch } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/pair");

const State = ({ of: { expiresAt, uses, maxUses } }: { readonly of: EnrollmentToken }) => {
  const now = useNow();
  if (maxUses !== null && uses >= maxUses) return <Status status={text.usedUp} />;
  return <Status status={Date.parse(expiresAt) <= now ? "expired" : "active"} />;
};

const columns = (onRevoke: (token: EnrollmentToken) => void): readonly Column<EnrollmentToken>[] => [
  { title: "Token", width: "minmax(100px, 2fr)", phone: true, cell: ({ name }) => name },
  { title: "State", width: "100px", phone: true, cell: (token) => <State of={token} /> },
  { title: "Paired", width: "110px", phone: true, cell: ({ uses, maxUses }) => text.uses(uses, maxUses) },
  { title: "Ends", width: AGO_WIDTH, cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
  {
    title: "Actions",
    head: <span className="out-of-sight">Actions</span>,
    width: "90px",
    cell: (token) => (
      <button
        type="button"
        data-size="small"
        aria-label={text.revokeNamed(token.name)}
        onClick={(event) => {
          event.stopPropagation();
          onRevoke(token);
        }}
      >
        {text.revoke}
      </button>
    ),
  },
];

const Revoke = ({ token, onClose, onDone }: { readonly token: EnrollmentToken; readonly onClose: () => void; readonly onDone: () => void }) => {
  const revoke = useMutation(
    api.pairing.revokeToken.mutationOptions({
      onSuccess: () => {
        for (const of of [api.pairing.listTokens, api.pairing.requests]) void queryClient.invalidateQueries(of.pathFilter());
        onDone();
      },
    }),
  );
  return (
    <Confirm title={text.revokeTitle} open onClose={onClose} submit={text.revoke} action={revoke} onConfirm={() => revoke.mutate({ tokenId: token.tokenId })}>
      {text.revokeText}
    </Confirm>
  );
};

interface OneTokenProps {
  readonly token: EnrollmentToken;
  readonly onClose: () => void;
  readonly onRevoke: () => void;
}
const OneToken = ({ token, onClose, onRevoke }: OneTokenProps) => {
  return (
    <Dialog title={token.name} open onClose={onClose}>
      <Facts
        of={{
          State: <State of={token} />,
          Uses: text.uses(token.uses, token.maxUses),
          Expires: <Ago at={token.expiresAt} />,
          Created: <Ago at={token.createdAt} />,
          Tags: token.tags.join(", "),
          Approval: token.approval === "required" ? text.needsApproval : undefined,
          "Pairs existing devices again": token.allowRepair ? "yes" : undefined,
          Id: <Copyable text={token.tokenId} />,
        }}
      />
      <div className="row">
        <button type="button" data-kind="danger" onClick={onRevoke}>
          {text.revoke}
        </button>
      </div>
    </Dialog>
  );
};

export const Tokens = () => {
  const search = route.useSearch();
  const opened = search.token;
  const navigate = useNavigate();
  const [creates, setCreates] = useState(false);
  const [revoked, setRevoked] = useState<EnrollmentToken | null>(null);
  const list = usePages<EnrollmentToken>((page) => api.pairing.listTokens.queryOptions({ page, pageSize: PAGE_SIZE }));
  const open = (token: string | undefined): void => void navigate({ to: "/pair", search: readPairSearch({ ...search, token }), replace: true });
  const current = Array.from({ length: list.count }, (_, at) => list.row(at)).find((each) => each?.tokenId === opened);
  const create = (
    <button type="button" onClick={() => setCreates(true)}>
      {text.createMany}
    </button>
  );
  return (
    <Panel title={text.tokens} icon={<PageIcon name="list" />}>
      <div className={css["head"]}>
        <p className="muted">{text.tokensHint}</p>
        {create}
      </div>
      <List
        label={text.tokens}
        columns={columns(setRevoked)}
        list={list}
        rows={3}
        fill={false}
        id={({ tokenId }) => tokenId}
        opened={opened}
        onOpen={({ tokenId }) => open(tokenId)}
        none={text.none}
      />
      {current === undefined || revoked !== null ? null : <OneToken token={current} onClose={() => open(undefined)} onRevoke={() => setRevoked(current)} />}
      {revoked === null ? null : (
        <Revoke
          token={revoked}
          onClose={() => setRevoked(null)}
          onDone={() => {
            setRevoked(null);
            open(undefined);
          }}
        />
      )}
      {creates ? <CreateToken onClose={() => setCreates(false)} /> : null}
    </Panel>
  );
};
