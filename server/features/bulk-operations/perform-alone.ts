// Performs items one by one, each by the handler of its single call: checks, events and refusals are the call's own.
import { type Contract, contract, type Operation, targetOf } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import { isAppError } from "../../core/errors.ts";
import type { Committed, KeyedCall } from "../../core/feature.ts";
import { eachAlone } from "../../core/many/each-alone.ts";
import { callIn } from "../../core/own-calls.ts";
import { type BulkWork, notSeen, type PerformDeps, type SingleGroup } from "./perform.ts";
import type { ItemRef, ItemResult } from "./store/items.ts";

type Name<G extends SingleGroup> = `${G}.${Extract<keyof Contract[G]["operations"], string>}`;
export interface SingleCall {
  readonly operation: { readonly [G in SingleGroup]: Name<G> }[SingleGroup];
  readonly input: object;
}

type AnyHandler = (call: KeyedCall, input: unknown) => Promise<Committed<unknown>>;

const run = async (deps: PerformDeps, { operation, input }: SingleCall, made: KeyedCall): Promise<unknown> => {
  const [group, name] = operation.split(".") as [SingleGroup, string]; // as: its type
  const { operations } = contract[group] as { readonly operations: Readonly<Record<string, Operation>> };
  const handler = Reflect.get(deps.handlers[group], name) as AnyHandler; // as: a change of the contract
  return (await handler(made, operations[name]?.input.parse(input))).result;
};

const commandIn = (result: unknown): string | null => {
  const commandId = typeof result === "object" && result !== null ? Reflect.get(result, "commandId") : null;
  return typeof commandId === "string" ? commandId : null;
};

export const performAlone =
  (callsOf: (targetId: string, params: Readonly<Record<string, unknown>>, deviceId: string) => readonly SingleCall[], needsDevice = false): BulkWork =>
  async (deps, tx, { row, scope, items, hasTime, afterwards }) => {
    const kind = targetOf(row.operation);
    const known =
      kind === "device" && isLimited(scope)
        ? await deps.devices.named(
            tx,
            scope,
            items.map(({ targetId }) => targetId),
          )
        : null;

    const refused = (_item: ItemRef, error: unknown): ItemResult => {
      if (!isAppError(error)) return { status: "failed", code: "INTERNAL_ERROR", message: "Something went wrong on the server." };
      const isTarget = error.code === `${kind.toUpperCase()}_NOT_FOUND`;
      if (isTarget) return notSeen({ row, scope });
      return { status: "failed", code: error.code, message: error.message };
    };

    /** The command of what was ordered, which some calls do not answer. */
    const commandOf = (targetId: string): Promise<string | null> => {
      if (row.operation === "app.remove") return deps.commandOf.app(tx, scope, targetId);
      return row.operation === "deployment.delete" ? deps.commandOf.deployment(tx, scope, targetId) : Promise.resolve(null);
    };

    const performed = async ({ targetId }: ItemRef): Promise<ItemResult> => {
      const deviceId = needsDevice ? await deps.deviceOf(tx, scope, targetId) : "";
      if (deviceId === null || known?.has(targetId) === false) return notSeen({ row, scope });
      const hints: (() => void)[] = [];
      let answered: string | null = null;
      for (const single of callsOf(targetId, row.params, deviceId)) {
        const call = callIn(tx, scope, (hint) => void hints.push(hint));
        answered = commandIn(await run(deps, single, call));
      }
      for (const hint of hints) afterwards(hint);
      const commandId = answered ?? (await commandOf(targetId));
      return commandId === null || row.await === "ordered" ? { status: "succeeded", commandId } : { status: "running", commandId };
    };

    const results: ItemResult[] = [];
    for (const item of items) {
      if (!hasTime()) break;
      const [result] = await eachAlone(tx, [item], async () => [await performed(item)], refused);
      if (result !== undefined) results.push(result);
    }
    return results;
  };
