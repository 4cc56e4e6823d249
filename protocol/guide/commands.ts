// Guide to commands.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER, queuedCommand, succeeded, TOMORROW } from "./records.ts";

const { commandId, deviceId, nodeId, userId } = IDS;

export const commands: Guide<"commands"> = {
  queue: {
    description:
      "Once this call returns, the command is stored. The gateway pushes it at once if the device has a socket; otherwise the device gets it when it connects or polls. Send an `Idempotency-Key`, so that repeating the request never queues the command twice. With `wait`, the response is held until the command has ended, up to 30 seconds.",
    input: { deviceId, type: "restart-app", payload: queuedCommand.payload },
    output: queuedCommand,
  },
  list: {
    description: "Lists the device's commands, newest first: open ones, and ended ones until they are deleted after the retention period.",
    input: { deviceId, page: 1, pageSize: 20 },
    output: { items: [succeeded], total: 1 },
  },
  poll: {
    input: { deviceId, limit: 10, wait: 0 },
    output: {
      items: [
        {
          commandId,
          type: queuedCommand.type,
          issuedAt: AT,
          payload: queuedCommand.payload,
          requiresAck: true,
          delivery: {
            attempt: 1,
            redelivered: false,
            seq: 1,
            lane: queuedCommand.lane,
            ackBy: LATER,
            expiresAt: TOMORROW,
            executionTimeoutSec: 300,
          },
        },
      ],
      cancel: [],
    },
  },
  get: { description: "Returns the command with its status, its deadlines and the agent's last acknowledgement.", input: { commandId }, output: succeeded },
  getOnDevice: {
    description: "Returns the same record as `GET /commands/{commandId}`, if the command belongs to this device.",
    input: { deviceId, commandId },
    output: succeeded,
  },
  ack: {
    description:
      "For agents without a socket. Send `running` while you work, then `succeeded`, `failed` or `rejected` with the result in `output`. The first final status wins. It is safe to repeat: a repeat gets the result `duplicate`, so send the ack again if you received no response.",
    input: { deviceId, commandId, status: "succeeded", output: { restartedInMs: 1_840 } },
    output: { commandId, status: "succeeded", result: "applied" },
  },
  cancel: {
    input: { deviceId, commandId, reason: "no longer needed" },
    output: { ...queuedCommand, status: "canceled", deadlineAt: null, finishedAt: LATER, cancelRequestedAt: LATER },
  },
  purge: {
    description: "Commands that were already sent to the device are left alone; cancel those one by one.",
    input: { deviceId, status: "queued" },
    output: { deviceId, canceled: 3 },
  },
  timeline: {
    description: "Explains why a command is stuck: `events` lists each step with its time and cause, and `blockedBy` says what the command is waiting for now.",
    input: { commandId },
    output: {
      commandId,
      status: "queued",
      traceparent: null,
      events: [{ at: AT, from: null, to: "queued", actor: `user:${userId}`, attempt: 0, nodeId, epoch: null, code: null, detail: null }],
      blockedBy: { kind: "offline", since: AT, explanation: "The device is offline; the command is sent when it connects or polls." },
    },
  },
};
