// The nodes that report, with their load, and the way to empty one before it is stopped.
import type { GatewayNode } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { type Column, Table } from "../../ui/list/table.tsx";
import { Empty, Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago, Since } from "../../ui/time.tsx";
import { text } from "./text.ts";

/** No event tells of nodes; they report every few seconds. */
const READ_EVERY_MS = 5_000;

const stateOf = ({ draining, overloaded }: GatewayNode) => (draining ? "draining" : overloaded ? "overloaded" : "healthy");
const number = (count: number) => <span>{text.number(count)}</span>;

const columnsOf = (drain: (node: GatewayNode) => void): readonly Column<GatewayNode>[] => [
  { title: text.node.id, width: "minmax(60px, 1fr)", phone: true, cell: ({ nodeId }) => <span className="mono">{nodeId}</span> },
  {
    title: text.node.state,
    width: "100px",
    phone: true,
    cell: (node) => <Status status={stateOf(node) === "overloaded" ? "degraded" : stateOf(node)} word={text.node.states[stateOf(node)]} />,
  },
  { title: text.node.sockets, width: "70px", cell: ({ connections }) => number(connections) },
  { title: text.node.ready, width: "60px", cell: ({ ready }) => number(ready) },
  { title: text.node.address, width: "minmax(80px, 2fr)", cell: ({ address, host, pid }) => <span title={`${host}, process ${pid}`}>{address}</span> },
  { title: text.node.version, width: "70px", cell: ({ version }) => version },
  { title: text.node.started, width: "90px", cell: ({ startedAt }) => <Since at={startedAt} /> },
  { title: text.node.seen, width: AGO_WIDTH, cell: ({ seenAt }) => <Ago at={seenAt} /> },
  {
    title: text.node.action,
    width: "84px",
    phone: true,
    cell: (node) =>
      node.draining ? null : (
        <button type="button" data-kind="plain" onClick={() => drain(node)} aria-label={`${text.node.drain} ${node.nodeId}`}>
          {text.node.drain}
        </button>
      ),
  },
];

const Drain = ({ node, onClose }: { readonly node: GatewayNode; readonly onClose: () => void }) => {
  const drain = useMutation(
    api.admin.drainNode.mutationOptions({
      onSuccess: () => {
        void queryClient.invalidateQueries(api.admin.listNodes.pathFilter());
        onClose();
      },
    }),
  );
  return (
    <Confirm
      title={text.node.drainTitle(node.nodeId)}
      open
      onClose={onClose}
      submit={text.node.drain}
      typed={node.nodeId}
      action={drain}
      onConfirm={() => drain.mutate({ nodeId: node.nodeId })}
    >
      {text.node.drainEffect(node.ready)}
    </Confirm>
  );
};

export const NodeList = () => {
  const read = useQuery({ ...api.admin.listNodes.queryOptions({}), refetchInterval: READ_EVERY_MS });
  const [drained, setDrained] = useState<GatewayNode | null>(null);
  const [columns] = useState(() => columnsOf(setDrained));
  return (
    <>
      <Loaded read={read} rows={4}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>{text.node.none}</Empty>
          ) : (
            <Table label={text.tabs.nodes} columns={columns} count={items.length} row={(index) => items[index]} id={({ nodeId }) => nodeId} />
          )
        }
      </Loaded>
      {drained === null ? null : <Drain node={drained} onClose={() => setDrained(null)} />}
    </>
  );
};
