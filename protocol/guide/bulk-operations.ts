// Guide to bulk operations.
import type { Guide } from "./guide.ts";
import { AT, IDS, shownWithActors } from "./records.ts";

const operationId = "blk_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const { deviceId } = IDS;
const counts = { total: 1_240, pending: 1_040, running: 180, succeeded: 18, failed: 1, skipped: 1, cancelled: 0 };
const operation = {
  operationId,
  tenantId: IDS.tenantId,
  operation: "device.command",
  name: "Restart the kiosks of Lisbon",
  target: { kind: "selector", fleetId: null, selector: { tags: ["site:lisbon"], platform: null, agentVersion: null, status: null } },
  params: { type: "restart-app", payload: { appId: IDS.appId } },
  await: "ended",
  maxParallel: 200,
  failureThreshold: { percent: 10, count: null, minSample: null },
  rate: null,
  status: "running",
  statusReason: null,
  counts,
  actions: ["pause", "cancel"],
  startAt: null,
  expiresAt: AT,
  retryOf: null,
  lastError: null,
  createdBy: `user:${IDS.userId}`,
  startedAt: AT,
  completedAt: null,
  createdAt: AT,
  updatedAt: AT,
};
const item = {
  n: 1,
  targetId: deviceId,
  name: "kiosk-17",
  status: "failed",
  code: "COMMAND_EXPIRED",
  message: null,
  attempt: 1,
  commandId: IDS.commandId,
  finishedAt: AT,
};
const paused = { ...operation, status: "paused", actions: ["resume", "cancel"] };

export const bulkOperations: Guide<"bulkOperations"> = {
  list: {
    description: "Newest first. A caller who is limited to some devices sees one's own operations only.",
    input: { status: ["running"] },
    output: { items: [shownWithActors(operation)], total: 1 },
  },
  create: {
    description:
      "Needs the permission of the single call as well. The targets that you see are frozen when the operation begins; each step then acts with the access that you have at that moment, and the operation pauses with `ACCESS_LOST` once you have lost it. An id that is unknown and one that you do not see get the same answer: a skipped item with `NOT_FOUND`. Ask for a preview first: `device.delete`, and `device.command` with `shell`, want its `total` in `params.confirm`. `device.tag`, `device.move` and `device.fleet` decide who sees a device, so a caller with limited access gets 403. To name up to a million targets, send `target: {upload: true}`, then the items in parts, and start the operation.",
    input: {
      operation: "device.command",
      target: { selector: { tags: ["site:lisbon"] } },
      params: { type: "restart-app", payload: { appId: IDS.appId } },
      name: operation.name,
      failureThreshold: { percent: 10 },
    },
    output: operation,
  },
  preview: {
    description: "Takes what the creation takes, and answers how many targets you see, the first 100 of them, and how many would be skipped.",
    input: { operation: "device.command", target: { selector: { tags: ["site:lisbon"] } }, params: { type: "ping" } },
    output: { total: 1_240, sample: [{ targetId: deviceId, name: "kiosk-17" }], refused: {} },
  },
  get: {
    description: "The counts always add up to `total`. `actions` lists the calls that its state allows.",
    input: { operationId },
    output: shownWithActors(operation),
  },
  wait: {
    description: "Answers as soon as the operation has one of the states, or after `timeout` seconds as it is then.",
    input: { operationId, status: ["completed", "completed_with_errors", "failed", "cancelled"], timeout: 30 },
    output: shownWithActors(operation),
  },
  listItems: {
    description: "In the order of their numbers. Items are kept for 30 days after the end.",
    input: { operationId, status: ["failed"] },
    output: { items: [item] },
  },
  results: {
    description:
      "A line of JSON for each item, in the order of their numbers, in the form of the list. With `follow` the answer goes on while the operation runs: each line comes when its item and all before it have ended. After a break, send the last number as `after`.",
    input: { operationId, follow: true },
    output: `${JSON.stringify(item)}\n`,
  },
  uploadItems: {
    description:
      'A line `{"id": …}` for each target, at most 4 MiB in a part. Repeat a part whose answer was lost: the same number with the same content changes nothing. What you do not see is skipped when its turn comes, with `NOT_FOUND`.',
    input: {
      operationId,
      part: 1,
      sha256: "192b9611ab9c174de3c818f31d6a92c5932a127e347e72e3b79a66556bc2add1",
      lines: `${JSON.stringify({ id: deviceId })}\n`,
    },
    output: { operationId, part: 1, added: 1, total: 1 },
  },
  start: {
    description: "Only a draft starts so; any other operation begins by itself. The draft of a `device.delete` or a `shell` needs all of its items first.",
    input: { operationId },
    output: { ...operation, status: "pending" },
  },
  pause: {
    description: "From the answer on nothing more begins. `counts.running` says how many commands are under way; they run to their end.",
    input: { operationId, reason: "the shops are open" },
    output: paused,
  },
  resume: { description: "Goes on where it stopped.", input: { operationId }, output: { ...operation, status: "pending" } },
  cancel: {
    description:
      "From the answer on nothing more begins; the items that have not begun are cancelled in the next steps. Commands that are under way run to their end.",
    input: { operationId, reason: "the wrong devices" },
    output: { ...operation, status: "cancelled", statusReason: "the wrong devices", actions: [] },
  },
  retryFailed: {
    description: "Makes another operation of the failed items, with the same parameters. The first one stays as it is.",
    input: { operationId, codes: ["COMMAND_EXPIRED"] },
    output: {
      ...operation,
      operationId: "blk_01J9ZQ3E8W6Y2V7K4M5N6P7Q8S",
      retryOf: operationId,
      status: "freezing",
      target: { kind: "retry", fleetId: null, selector: null },
    },
  },
};
