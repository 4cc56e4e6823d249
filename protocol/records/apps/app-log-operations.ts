// Logs of apps: what people read and follow, and what agents are ordered to send. The gateway passes lines on and stores none.
import { z } from "zod";
import { Moment } from "../../kit/bounds.ts";
import { command } from "../../kit/command-type.ts";
import { AppId, ref } from "../../kit/ids.ts";
import { query, subscription } from "../../kit/operation.ts";
import { LogBatch, LogTail, MAX_TAIL } from "./app-log.ts";

const read = { auth: ["user", "apiKey"], permission: "app:logs" } as const;
const tailed = {
  tail: z.int().min(1).max(MAX_TAIL).default(200).describe("The number of lines, the newest ones."),
  since: Moment.optional().describe("Only lines that are not older."),
};
const followed = { lastEventId: z.string().max(128).nullish().describe("Has no effect: a stream begins with the lines that come.") };
const tail = { ...read, limit: "app.logs" } as const;
const TAIL = ["DEVICE_OFFLINE", "COMMAND_QUEUE_FULL", "STREAM_LIMIT_REACHED"] as const;
const FOLLOW = ["COMMAND_QUEUE_FULL", "STREAM_LIMIT_REACHED"] as const;

const ofApp = z.strictObject({ appId: ref("app") });
const ofDeployment = z.strictObject({ deploymentId: ref("dep") });

export const appLogOperations = {
  logs: query({
    ...tail,
    summary: "Read the end of an app's log",
    rest: ["GET /apps/{appId}/logs"],
    input: ofApp.extend(tailed),
    output: LogTail,
    errors: ["APP_NOT_FOUND", ...TAIL],
  }),
  followLogs: subscription({
    ...read,
    summary: "Follow an app's log",
    rest: ["GET /apps/{appId}/logs/stream"],
    input: ofApp.extend(followed),
    output: LogBatch,
    errors: ["APP_NOT_FOUND", ...FOLLOW],
  }),
};

export const deploymentLogOperations = {
  logs: query({
    ...tail,
    summary: "Read the end of the log of a deployment's app",
    rest: ["GET /deployments/{deploymentId}/logs"],
    input: ofDeployment.extend(tailed),
    output: LogTail,
    errors: ["DEPLOYMENT_NOT_FOUND", ...TAIL],
  }),
  followLogs: subscription({
    ...read,
    summary: "Follow the log of a deployment's app",
    rest: ["GET /deployments/{deploymentId}/logs/stream"],
    input: ofDeployment.extend(followed),
    output: LogBatch,
    errors: ["DEPLOYMENT_NOT_FOUND", ...FOLLOW],
  }),
};

const asked = { appId: AppId, followId: z.string().min(1).max(64).describe("Of the chunks that answer this order.") };
/** Nobody waits longer for lines. */
const SECONDS = 15;

export const appLogCommands = {
  logs: command("app.logs", {
    summary: "Send the end of an app's log",
    payload: z.object({ ...asked, tail: z.int().min(1).max(MAX_TAIL), since: z.iso.datetime({ offset: true }).nullable() }),
    output: z.object({ lines: z.int().min(0).describe("The number of lines sent.") }),
    ttlSeconds: SECONDS,
    executionTimeoutSeconds: SECONDS,
    risk: "none",
  }),
  followLogs: command("app.logs.follow", {
    summary: "Send the lines that an app logs",
    payload: z.object({
      ...asked,
      seconds: z.int().min(1).max(3_600).describe("Send until then. The same `followId` again: until the new time."),
      since: z.iso.datetime({ offset: true }).nullable().describe("Begin with the lines after this time; `null`: with those that come."),
    }),
    output: z.object({ until: z.iso.datetime() }),
    // Agents without a socket poll for it.
    ttlSeconds: 3 * SECONDS,
    executionTimeoutSeconds: SECONDS,
    risk: "none",
  }),
};
