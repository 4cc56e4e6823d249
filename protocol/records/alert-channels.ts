// The operations on channels, which tell of alerts, and on silences, which keep them quiet.
import { z } from "zod";
import { Moment, Version } from "../kit/bounds.ts";
import { ref } from "../kit/ids.ts";
import { mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "./actor.ts";
import { AlertChannel, AlertSilence, ChannelConfig, ChannelTest, ChannelType, SilenceMatcher } from "./alerts.ts";

const Name = z.string().trim().min(1).max(100);
const oneSilence = z.strictObject({ silenceId: ref("sil") });
const oneChannel = z.strictObject({ channelId: ref("chn") });
const read = { auth: ["user", "apiKey"], permission: "alert_rule:read" } as const;
const silence = { auth: ["user", "apiKey"], permission: "alert:silence" } as const;
const write = { auth: ["user", "apiKey"], permission: "alert_rule:write" } as const;

export const alertSilenceOperations = {
  listSilences: query({
    ...read,
    summary: "List silences",
    rest: ["GET /alert-silences"],
    list: "page",
    input: listQuery({
      sort: ["createdAt", "endsAt"],
      by: "-createdAt",
      filters: { active: z.boolean().optional().describe("Only silences that hold now, or only the others.") },
    }),
    output: paged(named(AlertSilence)),
  }),
  createSilence: mutation({
    ...silence,
    summary: "Silence alerts for a time",
    rest: ["POST /alert-silences"],
    status: 201,
    location: "/alert-silences/{silenceId}",
    input: z.strictObject({
      matchers: z.array(SilenceMatcher).min(1).max(10).describe("All have to match."),
      startsAt: Moment.optional().describe("Default: now."),
      endsAt: Moment.describe("At most 30 days after the start."),
      comment: z.string().trim().min(1).max(500),
    }),
    output: AlertSilence,
    errors: ["ALERT_LIMIT_REACHED"],
  }),
  getSilence: query({
    ...read,
    summary: "Get a silence",
    rest: ["GET /alert-silences/{silenceId}"],
    input: oneSilence,
    output: named(AlertSilence),
    errors: ["SILENCE_NOT_FOUND"],
  }),
  removeSilence: mutation({
    ...silence,
    summary: "End and delete a silence",
    rest: ["DELETE /alert-silences/{silenceId}"],
    status: 204,
    input: oneSilence,
    output: z.null(),
    errors: ["SILENCE_NOT_FOUND"],
  }),
};

export const alertChannelOperations = {
  listChannels: query({
    ...read,
    summary: "List alert channels",
    rest: ["GET /alert-channels"],
    list: "page",
    input: listQuery({ sort: ["createdAt", "name"], by: "-createdAt" }),
    output: paged(named(AlertChannel)),
  }),
  getChannel: query({
    ...read,
    summary: "Get an alert channel",
    rest: ["GET /alert-channels/{channelId}"],
    input: oneChannel,
    output: named(AlertChannel),
    errors: ["CHANNEL_NOT_FOUND"],
  }),
  createChannel: mutation({
    ...write,
    summary: "Create an alert channel",
    rest: ["POST /alert-channels"],
    status: 201,
    location: "/alert-channels/{channelId}",
    input: z.strictObject({
      type: ChannelType,
      name: Name,
      config: ChannelConfig,
      enabled: z.boolean().default(true),
      isDefault: z.boolean().default(true),
      sendResolved: z.boolean().optional().describe("Default: `true`, but `false` for `email`."),
    }),
    output: AlertChannel.extend({ secret: z.string().optional().describe("Of a `webhook`, if the gateway made it. It is shown only in this response.") }),
    errors: ["ALERT_LIMIT_REACHED", "CHANNEL_URL_NOT_ALLOWED"],
  }),
  updateChannel: mutation({
    ...write,
    summary: "Change an alert channel",
    rest: ["PATCH /alert-channels/{channelId}"],
    input: oneChannel.extend({
      name: Name.optional(),
      config: ChannelConfig.optional().describe("Replaces all of it; a `webhook` without `secret` keeps its secret."),
      enabled: z.boolean().optional(),
      isDefault: z.boolean().optional(),
      sendResolved: z.boolean().optional(),
      version: Version.optional(),
    }),
    output: AlertChannel,
    errors: ["CHANNEL_NOT_FOUND", "CHANNEL_URL_NOT_ALLOWED", "VERSION_CONFLICT"],
  }),
  removeChannel: mutation({
    ...write,
    summary: "Delete an alert channel",
    rest: ["DELETE /alert-channels/{channelId}"],
    status: 204,
    input: oneChannel,
    output: z.null(),
    errors: ["CHANNEL_NOT_FOUND"],
  }),
  testChannel: mutation({
    ...write,
    summary: "Send a test message to an alert channel",
    rest: ["POST /alert-channels/{channelId}/test"],
    limit: "alerts.test",
    input: oneChannel,
    output: ChannelTest,
    errors: ["CHANNEL_NOT_FOUND"],
  }),
};
