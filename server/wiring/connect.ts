// Connects the parts that features return with those who run them: the outbox and the registries of outcomes and counters.
import { type CommandType, type Contract, contract } from "../../protocol/index.ts";
import type { FindStuck } from "../core/people/stuck.ts";
import type { OutcomeHandler, RegisteredOutcome } from "../core/ports/command-outcomes.ts";
import type { FeatureParts } from "../features/kit.ts";
import type { Counters } from "../features/tenants/index.ts";
import type { Outbox } from "../platform/outbox/outbox.ts";

type AnyParts = FeatureParts & { readonly handlers: unknown; readonly outcomes?: Readonly<Record<string, OutcomeHandler>> };
interface Registries {
  readonly outbox: Outbox;
  readonly outcomes: Map<string, RegisteredOutcome>;
  readonly counters: Counters;
  readonly stuck: FindStuck[];
}

/** Hands the parts of the features to those who run them. */
export const connectParts = (features: Readonly<Record<string, AnyParts>>, { outbox, outcomes, counters, stuck }: Registries) => {
  const parts = Object.entries(features);
  for (const [name, { consumer, counters: own, outcomes: handlers = {}, hideFor, stuck: find }] of parts) {
    const commandTypes: Readonly<Record<string, CommandType>> = contract[name as keyof Contract].commands;
    for (const [key, command] of Object.entries(commandTypes)) outcomes.set(command.type, { command, handle: handlers[key] as OutcomeHandler, hideFor });
    if (consumer !== undefined) outbox.consume(name, consumer);
    if (find !== undefined) stuck.push(find);
    Object.assign(counters, own);
  }
  return parts;
};
