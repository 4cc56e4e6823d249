// Columns of every list of backups.
import type { Backup } from "@mooring/client";
import { bytesText } from "../../ui/bytes.ts";
import type { Column } from "../../ui/list/table.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { text } from "./backup-text.ts";

/** With how far it is, and whether it can be trusted. */
export const BackupStatus = ({ of: { status, progress, verification } }: { readonly of: Pick<Backup, "status" | "progress" | "verification"> }) => (
  <span className="row">
    <Status status={status} />
    {status === "in_progress" && progress?.percent != null ? <span className="muted">{text.percent(progress.percent)}</span> : null}
    {verification.status === "unverified" ? null : <Status status={verification.status} />}
  </span>
);

export const appNameOf = ({ content, name }: Pick<Backup, "content" | "name">): string => content?.appName ?? name;

export const BACKUP_NAME: Column<Backup> = { title: text.name, phone: true, cell: ({ name }) => <span title={name}>{name}</span> };
export const BACKUP_STATUS: Column<Backup> = { title: text.status, width: "minmax(150px, 0.8fr)", phone: true, cell: (backup) => <BackupStatus of={backup} /> };
export const BACKUP_APP: Column<Backup> = { title: text.app, cell: appNameOf };
export const BACKUP_SIZE: Column<Backup> = { title: text.size, width: "90px", cell: ({ size }) => (size === null ? "" : bytesText(size)) };
export const BACKUP_CREATED: Column<Backup> = { title: text.created, width: AGO_WIDTH, phone: true, cell: ({ createdAt }) => <Ago at={createdAt} /> };
