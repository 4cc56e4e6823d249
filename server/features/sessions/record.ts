// A session as its owner sees it.
import { UserSession } from "../../../protocol/index.ts";
import { recordOf } from "../../core/rows/records.ts";
import type { SessionRow } from "./store.ts";

export const toSession = (row: SessionRow, currentId: string | undefined): UserSession =>
  recordOf(UserSession, { ...row, current: row.sessionId === currentId });
