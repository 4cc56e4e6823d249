// Commands, explained.
import type { Guide } from "./guide.ts";
import { AT, command, IDS, LATER, succeeded, TOMORROW } from "./records.ts";

const { commandId, deviceId, nodeId, userId } = IDS;

export const commands: Guide<"commands"> = {
  queue: {
    description:
      "The command exists once this answers, and reaches the device when it is there: at once over its socket, with its next poll otherwise. Send an `Idempotency-Key`, so that a repeated request queues nothing twice. With `wait` the answer is held until the command has ended, up to 30 seconds.",
    input: { deviceId, type: "restart-app", payload: command.payload },
    output: command,
  },
  list: {
    description: "All commands of a device, open and ended, as long as they are kept.",
    input: { deviceId, page: 1, pageSize: 20 },
    output: { items: [succeeded], total: 1 },
  },
  poll: {
    input: { deviceId, limit: 10, wait: 0 },
    output: {
      items: [
        {
          commandId,
          type: command.type,
          issuedAt: AT,
          payload: command.payload,
          requiresAck: true,
          delivery: {
            attempt: 1,
            redelivered: false,
            seq: 1,
            lane: command.lane,
            ackBy: LATER,
            expiresAt: TOMORROW,
            executionTimeoutSec: 300,
          },
        },
      ],
      cancel: [],
    },
  },
  get: { description: "One command with its state, its deadlines and the agent's last word.", input: { commandId }, output: succeeded },
  getOnDevice: { description: "The same, where the device's id is at hand.", input: { deviceId, commandId }, output: succeeded },
  ack: {
    description:
      "How an agent without a socket answers: `running` while it works, then `succeeded`, `failed` or `rejected`, with what came out in `output`. The first final status wins; a repeat is answered `duplicate`, so an agent that did not hear the answer simply sends again.",
    input: { deviceId, commandId, status: "succeeded", output: { restartedInMs: 1_840 } },
    output: { commandId, status: "succeeded", result: "applied" },
  },
  cancel: {
    input: { deviceId, commandId, reason: "no longer needed" },
    output: { ...command, status: "canceled", deadlineAt: null, finishedAt: LATER, cancelRequestedAt: LATER },
  },
  purge: {
    description: "Commands that the device has already been sent are not touched; cancel those one by one.",
    input: { deviceId, status: "queued" },
    output: { deviceId, canceled: 3 },
  },
  timeline: {
    description: "For the question why a command is stuck: every step with its time and cause, and in `blockedBy` one sentence about what it waits for now.",
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
