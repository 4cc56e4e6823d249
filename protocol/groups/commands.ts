// Commands: a caller queues one for a device, the agent receives it by push or poll and acknowledges it. Socket and REST share one queue and one state machine.
import { z } from "zod";
import { Moment } from "../kit/bounds.ts";
import { EventVersion, event, hint } from "../kit/event.ts";
import { CommandId, DeviceId, ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { cursorQuery, orderedQuery, paged } from "../kit/page.ts";
import { partialOf } from "../kit/partial.ts";
import { BlockedBy, Command, CommandStatus, CommandSummary, CommandTypeRecord, PolledCommand, TimelineEntry } from "../records/command.ts";
import { Ack, AckResult } from "../records/command-ack.ts";
import { CommandResult, CommandResults, commandFields } from "../records/command-order.ts";
import { FleetSelector } from "./fleets.ts";

const CommandChanged = CommandSummary.pick({
  commandId: true,
  deviceId: true,
  type: true,
  status: true,
  lane: true,
  createdBy: true,
  attempts: true,
  progress: true,
  failureCode: true,
  issuedAt: true,
  notBefore: true,
  deadlineAt: true,
  sentAt: true,
  startedAt: true,
  finishedAt: true,
  cancelRequestedAt: true,
}).extend({ previous: CommandStatus.nullable() });
const onDevice = { deviceId: ref("dev") };
const one = { commandId: ref("cmd") };
const both = { ...onDevice, ...one };

const filters = {
  status: z.array(CommandStatus).min(1).max(13).optional().describe("Only commands in one of these states, separated by commas."),
  type: z.string().min(1).max(64).optional().describe("Only commands of this type."),
  createdBy: z.string().min(1).max(200).optional().describe("Only commands of this creator, as `createdBy` shows it."),
  open: z.boolean().optional().describe("`true`: only commands that have not ended; `false`: only those that have."),
  since: Moment.optional().describe("Only commands that were queued at this time or later."),
};
const tenantFilters = {
  ...filters,
  blocked: z.boolean().optional().describe("`true`: only commands that are due and still queued: something is in their way."),
  deviceId: ref("dev").optional().describe("Only commands of this device."),
  order: z
    .enum(["newest", "oldest"])
    .default("newest")
    .describe("`oldest` begins with those that were queued first: of open ones, those that have waited longest."),
};
const part = partialOf(CommandSummary, "commandId");
const wait = (maxSeconds: number, until: string) => z.int().min(0).max(maxSeconds).default(0).describe(`Seconds to hold the response ${until}.`);

export const commands = group({
  tag: "Commands",
  operations: {
    queue: mutation({
      summary: "Queue a command for a device",
      rest: ["POST /devices/{deviceId}/commands", "POST /hosts/{deviceId}/commands"],
      auth: ["user", "apiKey"],
      permission: "device:command",
      status: 201,
      location: "/commands/{commandId}",
      idempotency: "own",
      query: ["wait"],
      maxWaitSeconds: 30,
      input: z.strictObject({
        ...onDevice,
        ...commandFields,
        wait: wait(30, "until the command has ended"),
      }),
      output: Command,
      errors: ["DEVICE_NOT_FOUND", "DEVICE_OFFLINE", "COMMAND_TYPE_UNKNOWN", "COMMAND_PAYLOAD_INVALID", "COMMAND_QUEUE_FULL"],
    }),
    queueMany: mutation({
      summary: "Queue a command for many devices",
      rest: ["POST /devices/commands"],
      auth: ["user", "apiKey"],
      permission: "device:command",
      idempotency: "own",
      weight: { field: "deviceIds", per: 200, otherwise: 5 },
      input: z
        .strictObject({
          deviceIds: z.array(ref("dev")).min(1).max(1_000).optional().describe("The devices. An id that occurs again counts once, at its first place."),
          selector: FleetSelector.optional().describe("Instead of `deviceIds`: the devices that match everything it names, at most 1,000."),
          ...commandFields,
        })
        .refine(({ deviceIds, selector }) => (deviceIds === undefined) !== (selector === undefined), {
          path: ["deviceIds"],
          message: "give either deviceIds or selector",
        }),
      output: CommandResults,
      errors: ["COMMAND_TYPE_UNKNOWN", "COMMAND_PAYLOAD_INVALID"],
    }),
    list: query({
      summary: "List a device's commands, newest first",
      rest: ["GET /devices/{deviceId}/commands", "GET /hosts/{deviceId}/commands"],
      auth: ["user", "apiKey"],
      permission: "command:read",
      list: "page",
      input: orderedQuery({ ...onDevice, ...filters }, 100),
      output: paged(Command),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    listAll: query({
      summary: "List the commands of all devices",
      rest: ["GET /commands"],
      auth: ["user", "apiKey"],
      permission: "command:read",
      list: "cursor",
      input: cursorQuery(tenantFilters),
      output: paged(CommandSummary),
    }),
    listPartial: query({
      summary: "List the commands of all devices with only some of their fields",
      rest: ["GET /commands/partial"],
      auth: ["user", "apiKey"],
      permission: "command:read",
      list: "cursor",
      input: cursorQuery({ ...tenantFilters, fields: part.fields }),
      output: paged(part.record),
    }),
    getMany: query({
      summary: "Get up to 200 commands",
      description: "In any order, without payload and output. Ids that are unknown or of another tenant are missing in the answer.",
      rest: ["GET /commands/batch"],
      auth: ["user", "apiKey"],
      permission: "command:read",
      list: "plain",
      input: z.strictObject({ ids: z.array(ref("cmd")).min(1).max(200).describe("Ids, separated by commas. Unknown ones are left out.") }),
      output: z.object({ items: z.array(CommandSummary) }),
    }),
    summary: query({
      summary: "Count the tenant's commands by state",
      rest: ["GET /commands/summary"],
      auth: ["user", "apiKey"],
      permission: "command:read",
      input: z.strictObject({}),
      output: z.object({
        open: z.record(z.string(), z.int()).describe("Commands that have not ended, by state."),
        pastDeadline: z.int().describe("Open commands whose deadline has passed; the gateway ends or repeats them within seconds."),
        blocked: z.int().describe("Commands that are due and still queued."),
        endedLastDay: z.record(z.string(), z.int()).describe("Commands that were queued within 24 hours and have ended, by state."),
        endedSince: z.iso
          .datetime()
          .nullable()
          .describe("`endedLastDay` counts only commands queued since then, because more than 50,000 are younger than 24 hours. `null`: all are counted."),
        version: EventVersion,
      }),
    }),
    types: query({
      summary: "List the types of commands, with the JSON Schemas of their payloads",
      rest: ["GET /commands/types"],
      auth: ["user", "apiKey"],
      permission: "command:read",
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(CommandTypeRecord) }),
    }),
    poll: query({
      summary: "Poll for due commands",
      description:
        "For agents without a socket. Repeating a poll is safe: it returns each command again until you acknowledge it. `cancel` lists the commands to stop, until you acknowledge them or their deadline passes. Send the id of the agent's process in `x-svc-instance-id`: while another process with the same identity holds a socket or polls, the response is 409 `DUPLICATE_IDENTITY` with `Retry-After`. The gateway still accepts acknowledgements. A process that knows that the other one has ended names it in `x-svc-instance-after` and takes its place at once.",
      rest: ["GET /devices/{deviceId}/commands", "GET /hosts/{deviceId}/commands"],
      auth: ["agent"],
      permission: "self",
      limit: "agent",
      list: "plain",
      maxWaitSeconds: 50,
      responseHeaders: { "x-svc-poll-interval": "Seconds to wait before the next poll." },
      headers: { instanceId: "x-svc-instance-id", formerInstanceId: "x-svc-instance-after" },
      input: z.object({
        ...onDevice,
        limit: z.int().min(1).max(50).default(10),
        wait: wait(50, "until a command is due or must be stopped"),
        instanceId: z.string().min(1).max(64).optional().describe("Id of the agent's process, the same as in `hello`."),
        formerInstanceId: z.string().min(1).max(64).optional().describe("Id of the process before it, which has ended on this machine."),
      }),
      output: z.object({ items: z.array(PolledCommand), cancel: z.array(CommandId) }),
      errors: ["DUPLICATE_IDENTITY"],
    }),
    get: query({
      summary: "Get a command",
      rest: ["GET /commands/{commandId}"],
      auth: ["user", "apiKey", "agent"],
      permission: "command:read",
      input: z.strictObject(one),
      output: Command,
      errors: ["COMMAND_NOT_FOUND"],
    }),
    getOnDevice: query({
      summary: "Get a command of a device",
      rest: ["GET /devices/{deviceId}/commands/{commandId}"],
      auth: ["user", "apiKey", "agent"],
      permission: "command:read",
      input: z.strictObject(both),
      output: Command,
      errors: ["DEVICE_NOT_FOUND", "COMMAND_NOT_FOUND"],
    }),
    ack: mutation({
      summary: "Acknowledge a command",
      rest: ["POST /devices/{deviceId}/commands/{commandId}/ack"],
      auth: ["agent"],
      permission: "self",
      limit: "agent",
      idempotency: "none",
      replay: "repeatable",
      maxBodyBytes: 262_144,
      input: Ack.extend(both),
      output: AckResult,
      errors: ["COMMAND_NOT_FOUND"],
    }),
    cancel: mutation({
      summary: "Cancel a command",
      description:
        "A queued command is canceled at once. For a command that was already sent, the gateway asks the agent to stop it and gives it a deadline. `force` cancels without asking the agent.",
      rest: ["POST /devices/{deviceId}/commands/{commandId}/cancel", "POST /commands/{commandId}/cancel"],
      auth: ["user", "apiKey"],
      permission: "device:command",
      input: z.strictObject({ ...one, deviceId: ref("dev").optional(), reason: z.string().max(500).optional(), force: z.boolean().default(false) }),
      output: Command,
      errors: ["COMMAND_NOT_FOUND", "COMMAND_ALREADY_FINAL"],
    }),
    purge: mutation({
      summary: "Cancel all queued commands of a device",
      rest: ["DELETE /devices/{deviceId}/commands"],
      auth: ["user", "apiKey"],
      permission: "device:command",
      input: z.strictObject({ ...onDevice, status: z.literal("queued").default("queued").describe("Only `queued` commands can be purged.") }),
      output: z.object({ deviceId: DeviceId, canceled: z.int() }),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    timeline: query({
      summary: "Get a command's timeline and what it waits for",
      rest: ["GET /commands/{commandId}/timeline", "GET /devices/{deviceId}/commands/{commandId}/timeline"],
      auth: ["user", "apiKey"],
      permission: "command:read",
      input: z.strictObject({ ...one, deviceId: ref("dev").optional() }),
      errors: ["COMMAND_NOT_FOUND"],
      output: z.object({
        commandId: CommandId,
        status: CommandStatus,
        command: Command.extend({ deviceName: CommandSummary.shape.deviceName, actor: CommandSummary.shape.actor }),
        traceparent: z.string().nullable().describe("W3C trace context of the call that queued the command, as the agent received it."),
        events: z.array(TimelineEntry),
        blockedBy: BlockedBy,
      }),
    }),
  },
  records: { PartialCommand: part.record, CommandResult, CommandResults },
  events: {
    // Hints, because a row per step would double the writes of every command. None needs an id: each repeats all that a list shows of the command.
    queued: hint("command.queued", CommandChanged, "A command was queued"),
    changed: hint("command.changed", CommandChanged, "A command moved to another open state"),
    completed: event("command.completed", CommandChanged, "A command succeeded, or was delivered and needs no ack"),
    failed: event("command.failed", CommandChanged, "A command failed, was rejected, or could not be delivered"),
    canceled: event("command.canceled", CommandChanged, "A command was canceled"),
    expired: event("command.expired", CommandChanged, "A command was not delivered in time"),
    timedOut: event("command.timed_out", CommandChanged, "A command did not finish in time"),
    lateResult: event("command.late_result", CommandChanged, "A result arrived after the gateway had given the command up"),
  },
});
