// A viewer's filter: event types, with a wildcard after the dot, and one device.
import type { LiveEvent } from "../../../protocol/index.ts";

export interface Filter {
  /** Null: all types. */
  readonly types: readonly string[] | null;
  readonly deviceId: string | null;
}

export const accepts = ({ types, deviceId }: Filter, event: LiveEvent): boolean =>
  (types === null || types.some((type) => matches(type, event.type))) &&
  (deviceId === null || event.subjectId === deviceId || event.data["deviceId"] === deviceId);

/** The device that the event concerns; null for one about the tenant. */
export const deviceOf = ({ subjectId, data }: Pick<LiveEvent, "subjectId" | "data">): string | null => {
  if (subjectId.startsWith("dev_")) return subjectId;
  return typeof data["deviceId"] === "string" ? data["deviceId"] : null;
};

const matches = (asked: string, type: string): boolean => (asked.endsWith(".*") ? type.startsWith(asked.slice(0, -1)) : asked === type);
