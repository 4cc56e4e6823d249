// The enrollment tokens of the tenant, with what is left of each.
import type { EnrollmentToken } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Copyable, Facts, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago, useNow } from "../../ui/time.tsx";
import { CreateToken } from "./create-token.tsx";
import { readPairSearch } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/pair");

const State = ({ of: { expiresAt, uses, maxUses } }: { readonly of: EnrollmentToken }) => {
  const now = useNow();
  if (maxUses !== null && uses >= maxUses) return <Status status={text.usedUp} />;
  return <Status status={Date.parse(expiresAt) <= now ? "expired" : "active"} />;
};

const COLUMNS: readonly Column<EnrollmentToken>[] = [
  { title: "Name", width: "minmax(100px, 2fr)", phone: true, cell: ({ name }) => name },
  { title: "State", width: "100px", phone: true, cell: (token) => <State of={token} /> },
  { title: "Uses", width: "100px", phone: true, cell: ({ uses, maxUses }) => text.uses(uses, maxUses) },
  { title: "Expires", width: AGO_WIDTH, cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
  { title: "Tags", cell: ({ tags }) => tags.join(", ") },
];

const OneToken = ({ token, onClose }: { readonly token: EnrollmentToken; readonly onClose: () => void }) => {
  const [asks, setAsks] = useState(false);
  const revoke = useMutation(
    api.pairing.revokeToken.mutationOptions({
      onSuccess: () => {
        void queryClient.invalidateQueries(api.pairing.listTokens.pathFilter());
        onClose();
      },
    }),
  );
  if (asks)
    return (
      <Confirm
        title={text.revokeTitle}
        open
        onClose={() => setAsks(false)}
        submit={text.revoke}
        action={revoke}
        onConfirm={() => revoke.mutate({ tokenId: token.tokenId })}
      >
        {text.revokeText}
      </Confirm>
    );
  return (
    <Dialog title={token.name} open onClose={onClose}>
      <Facts
        of={{
          State: <State of={token} />,
          Uses: text.uses(token.uses, token.maxUses),
          Expires: <Ago at={token.expiresAt} />,
          Created: <Ago at={token.createdAt} />,
          Tags: token.tags.join(", "),
          "Pairs existing devices again": token.allowRepair ? "yes" : undefined,
          Id: <Copyable text={token.tokenId} />,
        }}
      />
      <div className="row">
        <button type="button" data-kind="danger" onClick={() => setAsks(true)}>
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
  const list = usePages<EnrollmentToken>((page) => api.pairing.listTokens.queryOptions({ page, pageSize: PAGE_SIZE }));
  const open = (token: string | undefined): void => void navigate({ to: "/pair", search: readPairSearch({ ...search, token }), replace: true });
  const current = Array.from({ length: list.count }, (_, at) => list.row(at)).find((each) => each?.tokenId === opened);
  const create = (
    <button type="button" onClick={() => setCreates(true)}>
      {text.create}
    </button>
  );
  return (
    <Panel title={text.tokens} beside={list.count > 0 ? create : undefined}>
      <p className="muted">{text.tokensHint}</p>
      <List
        label={text.tokens}
        columns={COLUMNS}
        list={list}
        rows={3}
        fill={false}
        id={({ tokenId }) => tokenId}
        opened={opened}
        onOpen={({ tokenId }) => open(tokenId)}
        none={text.none}
        action={create}
      />
      {current === undefined ? null : <OneToken token={current} onClose={() => open(undefined)} />}
      {creates ? <CreateToken onClose={() => setCreates(false)} /> : null}
    </Panel>
  );
};
