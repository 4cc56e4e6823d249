// `cli after-restore`: what remains to be done once an older dump is in the database. The dump brings back what people have ended since: sessions, keys,
// members. And it lacks the secrets that devices have changed since.
import type { openBootstrap } from "./bootstrap.ts";

/** Longer lists are for the console. */
const SHOWN = 1_000;

type Installation = Pick<Awaited<ReturnType<typeof openBootstrap>>, "audit" | "afterRestore">;

export interface AfterRestore {
  /** Logs that do not verify, with the first record that is wrong. */
  readonly brokenLogs: readonly { readonly tenantId: string; readonly reason: string }[];
  readonly intactLogs: number;
  readonly endedSessions: number;
  /** Devices whose repair window is open now; null if nobody asked for it. */
  readonly openedRepairs: number | null;
  readonly keys: Awaited<ReturnType<Installation["afterRestore"]["keys"]>>;
  readonly members: Awaited<ReturnType<Installation["afterRestore"]["members"]>>;
}

export const settleRestore = async ({ audit, afterRestore }: Installation, { repair }: { readonly repair: boolean }): Promise<AfterRestore> => {
  const brokenLogs: { tenantId: string; reason: string }[] = [];
  let intactLogs = 0;
  for await (const { tenantId, isIntact, broken } of audit.verify(undefined)) {
    if (isIntact) intactLogs += 1;
    else brokenLogs.push({ tenantId, reason: broken === null ? "unknown" : `record ${broken.sequence}: ${broken.reason}` });
  }
  return {
    brokenLogs,
    intactLogs,
    endedSessions: await afterRestore.endSessions(),
    openedRepairs: repair ? await afterRestore.openRepairs() : null,
    keys: await afterRestore.keys(SHOWN),
    members: await afterRestore.members(SHOWN),
  };
};

const dateOf = (at: Date | null): string => at?.toISOString().slice(0, 10) ?? "never";

/** For people. */
export const restoreLines = ({ brokenLogs, intactLogs, endedSessions, openedRepairs, keys, members }: AfterRestore): readonly string[] => [
  "The master key fits, and the schema is this build's.",
  `Audit: ${intactLogs} logs are whole.`,
  ...brokenLogs.map(({ tenantId, reason }) => `Audit: the log of ${tenantId} is BROKEN at ${reason}`),
  `Sessions: ${endedSessions} ended; everybody signs in again. Tokens of the local issuer last until they expire.`,
  openedRepairs === null
    ? "Devices: agents of Mooring come back by themselves, also with a secret that is newer than the dump. Others need a repair window: run this with --repair once the gateway runs."
    : `Devices: ${openedRepairs} are not online, and each may pair again with any enrollment token for a day.`,
  "",
  `Review these ${keys.length} keys; whatever was revoked after the dump works again:`,
  ...keys.map(({ tenantId, keyId, name, role, lastUsedAt }) => `  ${tenantId}  ${keyId}  ${role.padEnd(8)}  last used ${dateOf(lastUsedAt)}  ${name}`),
  "",
  `Review these ${members.length} members; whoever was removed after the dump is back:`,
  ...members.map(({ tenantId, userId, email, role }) => `  ${tenantId}  ${role.padEnd(8)}  ${userId}${email === null ? "" : `  ${email}`}`),
];
