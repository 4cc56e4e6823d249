// How the outbox keeps the data of an event. Those of commands, of which there is one for every command, are an array: their members in a fixed order
// without names, times as distances from the first one. All others are as they were told.

/** Rows of former releases have this order, so a new member goes to the end. */
export const COMMAND_MEMBERS = [
  ...["issuedAt", "deviceId", "type", "status", "previous", "createdBy", "lane", "attempts", "notBefore", "deadlineAt", "sentAt", "finishedAt"],
  ...["startedAt", "failureCode", "cancelRequestedAt", "progress"],
] as const;
/** SQL for the device of an event `e`, in either form. */
export const DEVICE_OF = "coalesce(e.data ->> 'deviceId', e.data ->> 1)";

const TIMES: ReadonlySet<string> = new Set(["notBefore", "deadlineAt", "sentAt", "startedAt", "finishedAt", "cancelRequestedAt"]);
const MILLISECONDS = "2026-11-22T10:00:00.000Z".length;

type Data = Readonly<Record<string, unknown>>;

/** Null for what would not come back the same. */
const msOf = (time: unknown): number | null => (typeof time === "string" && time.length === MILLISECONDS && time.endsWith("Z") ? Date.parse(time) : null);

export const packData = ({ type, subjectId, data }: { readonly type: string; readonly subjectId: string; readonly data: Data }): unknown => {
  const since = msOf(data["issuedAt"]);
  if (!type.startsWith("command.") || data["commandId"] !== subjectId || since === null) return data;
  const values: unknown[] = [since];
  let used = 1;
  for (let at = 1; at < COMMAND_MEMBERS.length; at += 1) {
    const name = COMMAND_MEMBERS[at] as string; // as: the index is within it
    const value = data[name] ?? null;
    const ms = TIMES.has(name) ? msOf(value) : null;
    values.push(ms === null ? value : ms - since);
    if (value !== null) used = at + 1;
  }
  values.length = used;
  return values;
};

export const unpackData = (subjectId: string, packed: unknown): Data => {
  if (!Array.isArray(packed)) return packed as Data; // as: the outbox holds arrays and objects
  const values: readonly unknown[] = packed;
  const since = Number(values[0]);
  const isoOf = (ms: number): string => new Date(ms).toISOString();
  const data: Record<string, unknown> = { commandId: subjectId, issuedAt: isoOf(since) };
  for (let at = 1; at < COMMAND_MEMBERS.length; at += 1) {
    const name = COMMAND_MEMBERS[at] as string; // as: the index is within it
    const value: unknown = values[at] ?? null;
    data[name] = typeof value === "number" && TIMES.has(name) ? isoOf(since + value) : value;
  }
  return data;
};
