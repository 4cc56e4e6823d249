// What a caller says of a new command, whatever device it is for, and what one item of a call for many devices answers.
import { z } from "zod";
import { Moment } from "../kit/bounds.ts";
import { ERROR_CODES } from "../kit/errors.ts";
import { Command, CommandPayload } from "./command.ts";

export const commandFields = {
  type: z.string().regex(/^[A-Za-z][A-Za-z0-9._-]{0,63}$/),
  payload: CommandPayload.default({}),
  requiresAck: z.boolean().default(true),
  lane: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/)
    .optional()
    .describe("Commands in the same lane run one after another."),
  priority: z.int().min(0).max(9).default(5),
  ttlSeconds: z.int().min(60).max(2_592_000).optional().describe("Delivery deadline, in seconds from now. The default depends on the type; mostly 24 hours."),
  expiresAt: Moment.nullable().optional().describe("Delivery deadline. `null`: the command never expires."),
  notBefore: Moment.optional(),
  executionTimeoutSeconds: z.int().min(10).max(604_800).optional(),
  maxAttempts: z.int().min(1).max(100).default(10),
  ifOffline: z.enum(["queue", "fail"]).default("queue"),
  idempotencyKey: z.string().optional(),
};

export const CommandResult = z.object({
  deviceId: z.string().describe("As the request named it."),
  command: Command.nullable().describe("The command, or the one that an earlier call with this idempotency key queued. `null`: it was refused."),
  error: z
    .object({
      code: z.enum(ERROR_CODES),
      message: z.string(),
      retryable: z.boolean(),
      retryAfter: z.int().optional().describe("Seconds to wait before the next attempt."),
      details: z.record(z.string(), z.unknown()),
    })
    .nullable()
    .describe("Why there is no command: the error that `POST /devices/{deviceId}/commands` returns in this case."),
});
export type CommandResult = z.infer<typeof CommandResult>;

export const CommandResults = z.object({
  items: z.array(CommandResult).describe("One for each device, in the order of `deviceIds`, or of the ids if a selector chose the devices."),
  counts: z.object({
    created: z.int().describe("Commands that this call queued."),
    replayed: z.int().describe("Commands that an earlier call with this idempotency key had queued."),
    refused: z.int().describe("Devices with an error."),
  }),
});
