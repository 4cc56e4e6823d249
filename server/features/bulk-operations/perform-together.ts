// Performs a whole slice in a few statements: commands for many devices, and their tags.
import { BULK_PARAMS, type BulkParams, type DeviceId } from "../../../protocol/index.ts";
import { eachAlone } from "../../core/many/each-alone.ts";
import type { DeliveryTerms, OrderResult } from "../../core/ports/delivery.ts";
import { actorOf } from "../../core/scope.ts";
import { type BulkWork, notSeen } from "./perform.ts";
import type { ItemRef, ItemResult } from "./store/items.ts";

const failed = (): ItemResult => ({ status: "failed", code: "INTERNAL_ERROR", message: "Something went wrong on the server." });
const at = (text: string | null | undefined): Date | null | undefined => (text == null ? text : new Date(text));

type Command = BulkParams<"device.command">;
const termsOf = ({ requiresAck, lane, priority, ttlSeconds, expiresAt, notBefore, maxAttempts, ifOffline }: Command): DeliveryTerms => ({
  requiresAck,
  lane,
  priority,
  ttlSeconds,
  expiresAt: at(expiresAt),
  notBefore: notBefore === undefined ? undefined : new Date(notBefore),
  maxAttempts,
  onlyOnline: ifOffline === "fail",
});

/** The item stays pending: the tenant's queue has maxNext later. */
const WAITS: ItemResult = { status: "pending" };
const resultOf = (result: OrderResult, isOrdered: boolean): ItemResult => {
  if (result.kind === "ordered") return { status: isOrdered ? "succeeded" : "running", commandId: result.commandId };
  if (result.code === "COMMAND_QUEUE_FULL" && result.details["scope"] === "tenant") return WAITS;
  return { status: "failed", code: result.code, message: result.message };
};

export const orderCommands =
  (commandOf: (params: Readonly<Record<string, unknown>>) => Command): BulkWork =>
  async ({ devices, enqueueEach }, tx, { row, scope, items, afterwards }) => {
    const command = commandOf(row.params);
    const { type, payload, executionTimeoutSeconds } = command;
    const orderedBy = actorOf(scope.principal);
    const known = await devices.named(
      tx,
      scope,
      items.map(({ targetId }) => targetId),
    );
    const order = async (slice: readonly ItemRef[]): Promise<readonly ItemResult[]> => {
      const seen = slice.filter(({ targetId }) => known.has(targetId));
      const { results, notify } = await enqueueEach(
        tx,
        scope,
        seen.map(({ n, targetId, attempt }) => ({
          deviceId: targetId as DeviceId, // as: `known` has it
          type,
          payload,
          // A defect cannot order an item twice.
          key: `blk:${row.operationId}:${n}:${attempt}`,
          orderedBy,
          terms: termsOf(command),
          ...(executionTimeoutSeconds === undefined ? {} : { executionTimeoutSeconds }),
        })),
      );
      afterwards(notify);
      const ordered = new Map(seen.map(({ n }, index) => [n, results[index]]));
      return slice.map(({ n }) => {
        const result = ordered.get(n);
        return result === undefined ? notSeen({ row, scope }) : resultOf(result, row.await === "ordered");
      });
    };
    return eachAlone(tx, items, order, failed);
  };

export const tagDevices: BulkWork = async ({ devices }, tx, { row, scope, items, afterwards }) => {
  const { add, remove } = BULK_PARAMS["device.tag"].parse(row.params);
  const tag = async (slice: readonly ItemRef[]): Promise<readonly ItemResult[]> => {
    const { outcomes, forget } = await devices.tag(
      tx,
      scope,
      slice.map(({ targetId }) => targetId),
      { add, remove },
    );
    afterwards(forget);
    return slice.map(({ targetId }) => {
      const outcome = outcomes.get(targetId);
      if (outcome === undefined) return notSeen({ row, scope });
      return outcome === "too_many"
        ? { status: "failed", code: "VALIDATION_FAILED", message: "The device would have more than 50 tags." }
        : { status: "succeeded" };
    });
  };
  return eachAlone(tx, items, tag, failed);
};
