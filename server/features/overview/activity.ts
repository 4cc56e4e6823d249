// What happened last, folded: events of one type that follow each other closely have one cause more often than not.
import type { OverviewActivity } from "../../../protocol/index.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import { commonTag, type TagTotals } from "../../core/people/common-tag.ts";

const CLOSE_MS = 300_000;
const LINES = 12;

export interface NamedDevice {
  readonly name: string;
  readonly tags: readonly string[];
}
/** By device. */
export type NamedDevices = ReadonlyMap<string, NamedDevice>;

export const deviceOfEvent = ({ subjectId, data }: DispatchedEvent): string | null => {
  if (subjectId.startsWith("dev_")) return subjectId;
  return typeof data["deviceId"] === "string" ? data["deviceId"] : null;
};

/** Newest first, as the events are. */
const foldEvents = (events: readonly DispatchedEvent[]): DispatchedEvent[][] => {
  const folded: DispatchedEvent[][] = [];
  const open = new Map<string, DispatchedEvent[]>();
  for (const event of events) {
    const line = open.get(event.type);
    const last = line?.at(-1);
    if (line !== undefined && last !== undefined && last.createdAt.getTime() - event.createdAt.getTime() <= CLOSE_MS) line.push(event);
    else {
      const begun = [event];
      open.set(event.type, begun);
      folded.push(begun);
    }
  }
  return folded.slice(0, LINES);
};

const subjectOf = (event: DispatchedEvent, devices: NamedDevices): OverviewActivity["subject"] => {
  const deviceId = deviceOfEvent(event);
  if (deviceId !== null) return { kind: "device", id: deviceId, name: devices.get(deviceId)?.name ?? null };
  const { name } = event.data;
  return { kind: "other", id: event.subjectId, name: typeof name === "string" ? name : null };
};

export const activityOf = (events: readonly DispatchedEvent[], devices: NamedDevices, totals: TagTotals): OverviewActivity[] =>
  foldEvents(events).flatMap((line) => {
    const [newest] = line;
    if (newest === undefined) return [];
    const about = line.flatMap((event) => devices.get(deviceOfEvent(event) ?? "") ?? []);
    return {
      type: newest.type,
      count: line.length,
      at: newest.createdAt.toISOString(),
      subject: line.length === 1 ? subjectOf(newest, devices) : null,
      tag: line.length === 1 ? null : commonTag(about, line.length, totals),
      data: { ...newest.data },
    };
  });
