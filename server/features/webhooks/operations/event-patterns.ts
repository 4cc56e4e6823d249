// Which events a webhook wants: exact types, `group.*` for all of a group, `*` for all.
import { contract, type EventType, type Group } from "../../../../protocol/index.ts";

/** Every event that webhooks can receive, by its type. */
export const DURABLE_EVENTS: ReadonlyMap<string, EventType> = new Map(
  Object.values<Group>(contract)
    .flatMap(({ events }) => Object.values(events))
    .filter(({ durable }) => durable)
    .map((event) => [event.type, event]),
);

const groupOf = (type: string): string => type.slice(0, type.indexOf("."));
const PATTERNS: ReadonlySet<string> = new Set(["*", ...[...DURABLE_EVENTS.keys()].flatMap((type) => [type, `${groupOf(type)}.*`])]);

export const unknownPatterns = (patterns: readonly string[]): readonly string[] => patterns.filter((pattern) => !PATTERNS.has(pattern));

export const matches = (patterns: ReadonlySet<string>, type: string): boolean => patterns.has(type) || patterns.has("*") || patterns.has(`${groupOf(type)}.*`);

const TEST = contract.webhooks.events.tested.type;
/** Only its own webhook receives a test, from the call itself; what befalls a webhook is told to the others, so that no loop begins. */
export const isFor = (
  webhookId: string,
  patterns: ReadonlySet<string>,
  { type, data }: { readonly type: string; readonly data: Readonly<Record<string, unknown>> },
): boolean => type !== TEST && matches(patterns, type) && !(groupOf(type) === "webhook" && data["webhookId"] === webhookId);
