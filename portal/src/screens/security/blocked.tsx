// Who is blocked, why and until when.
import type { BlockedEntity } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { Block } from "./block.tsx";
import { Entity } from "./entity.tsx";
import { text } from "./text.ts";

const COLUMNS: readonly Column<BlockedEntity>[] = [
  { title: "Who", width: "minmax(60px, 2fr)", phone: true, cell: ({ entityType, entityValue }) => <Entity entityType={entityType} entityId={entityValue} /> },
  { title: text.reason, width: "minmax(80px, 2fr)", cell: ({ reason }) => reason },
  { title: "By", width: "minmax(80px, 1fr)", cell: ({ createdBy }) => <span className="mono muted">{createdBy}</span> },
  { title: "Since", width: AGO_WIDTH, cell: ({ createdAt }) => <Ago at={createdAt} /> },
  {
    title: text.expires,
    width: "96px",
    phone: true,
    cell: ({ expiresAt }) => (expiresAt === null ? <span className="muted">{text.forever}</span> : <Ago at={expiresAt} />),
  },
];

const Unblock = ({ of: { id: blockedEntityId, entityValue }, onClose }: { readonly of: BlockedEntity; readonly onClose: () => void }) => {
  const unblock = useMutation(
    api.security.unblock.mutationOptions({
      onSuccess: async () => {
        await queryClient.invalidateQueries(api.security.pathFilter());
        onClose();
      },
    }),
  );
  return (
    <Confirm
      title={text.unblockTitle(entityValue)}
      open
      onClose={onClose}
      submit={text.unblock}
      action={unblock}
      onConfirm={() => unblock.mutate({ blockedEntityId })}
    >
      {text.unblockNote}
    </Confirm>
  );
};

export const Blocked = () => {
  const mayBlock = useMay()("security:block");
  const [blocking, setBlocking] = useState(false);
  const [leaving, setLeaving] = useState<BlockedEntity | null>(null);
  const list = usePages<BlockedEntity>((page) => api.security.listBlocked.queryOptions({ page, pageSize: PAGE_SIZE }));
  const action: Column<BlockedEntity> = {
    title: "Change",
    width: "76px",
    phone: true,
    cell: (entity) => (
      <button type="button" data-kind="plain" aria-label={`${text.unblock} ${entity.entityValue}`} onClick={() => setLeaving(entity)}>
        {text.unblock}
      </button>
    ),
  };
  const block = mayBlock ? (
    <button type="button" data-kind="danger" onClick={() => setBlocking(true)}>
      {text.block}
    </button>
  ) : undefined;
  return (
    <>
      {list.count > 0 && block !== undefined ? <div>{block}</div> : null}
      <List
        label={text.tabs.blocked}
        columns={mayBlock ? [...COLUMNS, action] : COLUMNS}
        list={list}
        rows={6}
        id={({ id }) => id}
        none={text.noBlocked}
        action={block}
      />
      {blocking ? <Block onClose={() => setBlocking(false)} /> : null}
      {leaving === null ? null : <Unblock of={leaving} onClose={() => setLeaving(null)} />}
    </>
  );
};
