// One record of the audit log: who did what, from where, and what it changed.
import type { AuditLog } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { ResourceLink } from "../../parts/resource-link.tsx";
import { Copyable, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { exactTime } from "../../ui/time.tsx";
import { RowDiff } from "./diff.tsx";
import type { AuditSearch } from "./search.ts";
import { text } from "./text.ts";

export const actorName = ({ name, email, type, id }: AuditLog["actor"]): string => name ?? email ?? (id === "" ? text.somebody[type] : id);

/** The other records that have something in common with this one. */
const Alike = ({ log: { actor, action, resource } }: { readonly log: AuditLog }) => {
  const same: readonly (readonly [string, AuditSearch])[] = [
    ...(actor.id === "" ? [] : [[text.sameActor, { actor: actor.id }] as const]),
    [text.sameAction, { action }],
    ...(resource.id === null ? [] : [[text.sameResource, { resource: resource.id }] as const]),
  ];
  return (
    <nav className="row" aria-label="Records alike">
      {same.map(([words, search]) => (
        <Link key={words} to="/audit" search={search}>
          {words}
        </Link>
      ))}
    </nav>
  );
};

const Shown = ({ log }: { readonly log: AuditLog }) => {
  const { at, actor, action, resource, outcome, code, changes, omitted, requestId, sequence } = log;
  return (
    <>
      <Facts
        of={{
          When: exactTime(at),
          Who: actorName(actor),
          As: text.somebody[actor.type],
          Action: <code>{action}</code>,
          Resource: resource.id === null ? resource.type : <ResourceLink id={resource.id} />,
          Outcome: <Status status={outcome === "success" ? "ok" : "rejected"} word={text.outcomes[outcome]} />,
          Code: code === null ? null : <code>{code}</code>,
          Address: actor.ip,
          Program: actor.userAgent,
          Request: requestId === null ? null : <Copyable text={requestId} />,
          Number: sequence,
        }}
      />
      {outcome === "refused" ? <p>{text.refused}</p> : null}
      {changes.map((change, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a record never changes
        <RowDiff key={index} change={change} />
      ))}
      {changes.length === 0 ? <p className="muted">{text.noRows}</p> : null}
      {omitted > 0 ? <p className="muted">{text.omitted(omitted)}</p> : null}
      <Alike log={log} />
    </>
  );
};

export const AuditRecord = ({ auditId, onClose }: { readonly auditId: string; readonly onClose: () => void }) => {
  const record = useQuery({ ...api.audit.get.queryOptions({ auditId }), staleTime: Number.POSITIVE_INFINITY, refetchInterval: false });
  return (
    <Panel
      title="Record"
      beside={
        <button type="button" data-kind="plain" onClick={onClose}>
          {text.close}
        </button>
      }
    >
      <Loaded read={record} rows={8}>
        {(log) => <Shown log={log} />}
      </Loaded>
    </Panel>
  );
};
