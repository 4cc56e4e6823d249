// What an app's page shows of its backups, which loads when somebody may see it.
import { lazy } from "react";

const load = () => import("../../parts/backups/app-backups.tsx");

export const AppBackups = lazy(async () => ({ default: (await load()).AppBackups }));
export const AppBackupsPanel = lazy(async () => ({ default: (await load()).AppBackupsPanel }));
export const LastBackup = lazy(async () => ({ default: (await load()).LastBackup }));
