// A viewer's filter: event types, with a wildcard after the dot, devices and commands, and whether every step of a command matters.
import { contract, type LiveEvent } from "../../../protocol/index.ts";

export interface Filter {
  /** Null: all types. */
  readonly types: readonly string[] | null;
  /** Ids of devices and commands; null: all. */
  readonly subjects: ReadonlySet<unknown> | null;
  /** Hides the steps of commands that have not ended. */
  readonly endsOnly: boolean;
}

const { queued, changed } = contract.commands.events;
const { seen } = contract.devices.events;
const { badges } = contract.live.events;
const STEPS: ReadonlySet<string> = new Set([queued.type, changed.type]);

/** Only viewers who asked for them get these, whatever their filter and their limits: what is in them is made for the viewer. */
export const isAskedFor = ({ type }: Pick<LiveEvent, "type">): boolean => type === badges.type;

/** Only viewers who asked for it get `device.seen`. */
export const accepts = ({ types, subjects, endsOnly }: Filter, event: LiveEvent): boolean =>
  event.type === seen.type ||
  isAskedFor(event) ||
  ((types === null || types.some((type) => matches(type, event.type))) &&
    (subjects === null || subjects.has(event.subjectId) || subjects.has(event.data["deviceId"])) &&
    !(endsOnly && STEPS.has(event.type)));

/** The device that the event concerns; null for one about the tenant. */
export const deviceOf = ({ subjectId, data }: Pick<LiveEvent, "subjectId" | "data">): string | null => {
  if (subjectId.startsWith("dev_")) return subjectId;
  return typeof data["deviceId"] === "string" ? data["deviceId"] : null;
};

const matches = (asked: string, type: string): boolean => (asked.endsWith(".*") ? type.startsWith(asked.slice(0, -1)) : asked === type);
