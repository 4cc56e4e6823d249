// Guide to commands.
import { messageOf } from "../kit/errors.ts";
import type { Guide } from "./guide.ts";
import { AT, actor, IDS, LATER, queuedCommand, succeeded, TOMORROW } from "./records.ts";

const { commandId, deviceId, nodeId, userId } = IDS;
const otherDeviceId = "dev_01J9ZQ7X1C3D5F7H9K2M4P6R8T";

const { payload: _, ack: __, ...light } = succeeded;
const summary = { ...light, deviceName: "attic", actor };

export const commands: Guide<"commands"> = {
  queue: {
    description:
      "Once this call returns, the command is stored. The gateway pushes it at once if the device has a socket; otherwise the device gets it when it connects or polls. Send an `Idempotency-Key`, so that repeating the request never queues the command twice. With `wait`, the response is held until the command has ended, up to 30 seconds.",
    input: { deviceId, type: "restart-app", payload: queuedCommand.payload },
    output: queuedCommand,
  },
  queueMany: {
    description:
      "Queues the same command for up to 1,000 devices in one transaction: for `deviceIds`, or for the devices that match `selector`. Each device has its own item with its own command or error, and a device that is unknown, offline or full keeps no other from its command. The response is 200 whenever the request itself is valid, so read `counts.refused`. An error concerns the request as a whole, and then nothing was queued: a selector that matches more than 1,000 devices gets 400 `VALIDATION_FAILED` with the number in `details.matches`, and a payload whose size times the number of devices exceeds 4 MiB gets 422 `COMMAND_PAYLOAD_INVALID` with the largest number in `details.maxDevices`.\n\nAn `Idempotency-Key` applies to each device by itself, as if you had called `POST /devices/{deviceId}/commands` with this key: repeat the request, also after an answer that was lost or partly refused, and each device has one command. A repeat with a selector chooses the devices again. Against the rate limit each 200 devices count as one call, a selector as five.",
    input: { deviceIds: [deviceId, otherDeviceId], type: "restart-app", payload: queuedCommand.payload },
    output: {
      items: [
        { deviceId, command: queuedCommand, error: null },
        {
          deviceId: otherDeviceId,
          command: null,
          error: {
            code: "DEVICE_NOT_FOUND",
            message: messageOf("DEVICE_NOT_FOUND", { deviceId: otherDeviceId }),
            retryable: false,
            details: { deviceId: otherDeviceId },
          },
        },
      ],
      counts: { created: 1, replayed: 0, refused: 1 },
    },
  },
  list: {
    description: "Lists the device's commands, newest first: open ones, and ended ones until they are deleted after the retention period.",
    input: { deviceId, page: 1, pageSize: 20 },
    output: { items: [succeeded], total: 1 },
  },
  listAll: {
    description:
      "Lists the commands of all devices without payload and output, newest first or oldest first. It counts nothing: follow `nextCursor`. `open=true` and `blocked=true` find what is stuck; with `order=oldest` what is stuck longest comes first.",
    input: { open: true, pageSize: 20 },
    output: { items: [summary] },
  },
  listPartial: {
    description: "Lists the same commands as `GET /commands`, with the same filters and cursors, and leaves out the fields that you do not name.",
    input: { fields: ["deviceName", "type", "status"], pageSize: 100 },
    output: { items: [{ commandId, deviceName: summary.deviceName, type: summary.type, status: summary.status }] },
  },
  getMany: { input: { ids: [commandId] }, output: { items: [summary] } },
  summary: {
    description: "Counts open commands by state, and those of the last day that have ended.",
    output: { open: { queued: 2, running: 1 }, pastDeadline: 0, blocked: 1, endedLastDay: { succeeded: 40, failed: 1 }, endedSince: null, version: 4_711 },
  },
  types: {
    description:
      "Describes every type whose payload and output the gateway knows: schemas, default deadlines and the permission that it needs. A caller may queue any other type too: what it means is a matter of the caller and the agent, and unless the gateway has rules for it, it gets a day to be delivered and 15 minutes to run.",
    output: {
      items: [
        {
          type: "restart-app",
          summary: "Restarts an app that the agent runs by its own means.",
          payload: { type: "object", properties: { appId: { type: "string", minLength: 1, maxLength: 128 } }, additionalProperties: {} },
          output: {
            type: "object",
            properties: { appId: { type: "string" }, state: { type: "string" }, restarts: { type: "integer", minimum: 0 } },
            required: ["appId", "state", "restarts"],
            additionalProperties: {},
          },
          risk: "change",
          ttlSeconds: 3_600,
          executionTimeoutSeconds: 900,
          redeliverSafe: true,
          lane: "app",
          permission: "device:command",
          orderedBy: "caller",
        },
      ],
    },
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
      command: { ...queuedCommand, deviceName: "attic", actor },
      traceparent: null,
      events: [{ at: AT, from: null, to: "queued", actor: `user:${userId}`, by: actor, attempt: 0, nodeId, epoch: null, code: null, detail: null }],
      blockedBy: {
        kind: "offline",
        since: AT,
        until: null,
        deadlineAt: TOMORROW,
        explanation: "The device is offline; the command is sent when it connects or polls.",
      },
    },
  },
};
