// Columns of every list of commands. What is open ticks.
import type { CommandSummary } from "@mooring/client";
import type { Column } from "../ui/list/table.tsx";
import { Status } from "../ui/status.tsx";
import { AGO_WIDTH, Ago, duration, Since } from "../ui/time.tsx";
import { isOpen } from "./command.ts";

/** What both a command and its summary have. */
export type CommandRow = Pick<CommandSummary, "commandId" | "type" | "status" | "issuedAt" | "startedAt" | "finishedAt" | "progress" | "failureCode">;

const Lasted = ({ command: { status, issuedAt, startedAt, finishedAt, progress } }: { readonly command: CommandRow }) => {
  if (!isOpen(status)) return finishedAt === null ? null : duration(Math.max(0, Date.parse(finishedAt) - Date.parse(issuedAt)));
  const pct = status === "running" && progress?.pct != null ? `${Math.round(progress.pct)} % · ` : "";
  return (
    <>
      {pct}
      <Since at={startedAt ?? issuedAt} />
    </>
  );
};

export const STATUS: Column<CommandRow> = { title: "Status", width: "116px", phone: true, cell: ({ status }) => <Status status={status} /> };
export const TYPE: Column<CommandRow> = { title: "Type", width: "minmax(60px, 1.5fr)", phone: true, cell: ({ type }) => <strong>{type}</strong> };
export const CODE: Column<CommandRow> = { title: "Code", width: "minmax(90px, 1fr)", cell: ({ failureCode }) => <code>{failureCode}</code> };
export const LASTED: Column<CommandRow> = { title: "Lasted", width: "120px", cell: (command) => <Lasted command={command} /> };
export const QUEUED: Column<CommandRow> = { title: "Queued", width: AGO_WIDTH, phone: true, cell: ({ issuedAt }) => <Ago at={issuedAt} /> };
