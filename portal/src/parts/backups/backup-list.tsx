// The backups of one app or of one device.
import type { Backup } from "@mooring/client";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { List } from "../../ui/list/filtered-list.tsx";
import { BACKUP_APP, BACKUP_CREATED, BACKUP_NAME, BACKUP_SIZE, BACKUP_STATUS } from "./backup-columns.tsx";
import { text } from "./backup-text.ts";

const OF_APP = [BACKUP_NAME, BACKUP_STATUS, BACKUP_SIZE, BACKUP_CREATED];
const OF_DEVICE = [BACKUP_NAME, BACKUP_STATUS, BACKUP_APP, BACKUP_SIZE, BACKUP_CREATED];

interface BackupListProps {
  readonly of: { readonly appId: string } | { readonly deviceId: string };
  readonly action?: ReactNode;
}
export const BackupList = ({ of, action }: BackupListProps) => {
  const navigate = useNavigate();
  const list = usePages<Backup>((page) => api.backups.list.queryOptions({ ...of, page, pageSize: PAGE_SIZE }));
  return (
    <List
      label={text.backups}
      columns={"appId" in of ? OF_APP : OF_DEVICE}
      list={list}
      id={({ backupId }) => backupId}
      onOpen={({ backupId }) => void navigate({ to: "/backups/$backupId", params: { backupId } })}
      none={text.none}
      action={action}
    />
  );
};
