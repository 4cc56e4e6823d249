// Update policies and rollouts: a fleet is updated in phases, and the update stops by itself when it goes wrong.
import { z } from "zod";
import { Moment, Version } from "../kit/bounds.ts";
import { ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { cursorQuery, listQuery, paged } from "../kit/page.ts";
import { awaitedFields, MAX_WAIT_SECONDS } from "../kit/wait.ts";
import { named } from "../records/actor.ts";
import { Rollout, RolloutDevice, RolloutDeviceStatus, RolloutFailure, RolloutPreview, RolloutStatus, RolloutStep, RolloutTrait } from "../records/rollout.ts";
import { rolloutEvents } from "../records/rollout-events.ts";
import { UpdatePolicy, UpdatePolicyInput, UpdateSettingsInput, updatePolicyChange } from "../records/update-policy.ts";

const Name = z.string().trim().min(1).max(100);
const Reason = z.string().trim().min(1).max(500);
const people = { auth: ["user", "apiKey"] } as const;
const onePolicy = z.strictObject({ updatePolicyId: ref("upl") });
const one = z.strictObject({ rolloutId: ref("rlt") });
const readPolicy = { ...people, permission: "fleet:read" } as const;
const writePolicy = { ...people, permission: "fleet:write" } as const;
const read = { ...people, permission: "rollout:read" } as const;
const operate = { ...people, permission: "rollout:operate" } as const;
const write = { ...people, permission: "rollout:write" } as const;
const approve = { auth: ["user"], permission: "rollout:approve" } as const;

const SETTINGS = [
  "UPDATE_VERSION_UNKNOWN",
  "APP_TEMPLATE_NOT_FOUND",
  "PLAN_UPGRADE_REQUIRED",
  "CRON_INVALID",
  "WINDOW_NEVER_OPENS",
  "ROLLBACK_NOT_POSSIBLE",
] as const;
const CHANGE = ["ROLLOUT_NOT_FOUND", "INVALID_STATE_TRANSITION"] as const;
const START = ["ROLLOUT_CONFLICT", "UPDATE_VERSION_UNKNOWN", "FLEET_NOT_FOUND", "PLAN_LIMIT_EXCEEDED"] as const;

const Creation = z
  .strictObject({
    fleetId: ref("flt"),
    updatePolicyId: ref("upl").optional(),
    settings: UpdateSettingsInput.optional().describe("Instead of a policy."),
    name: Name.optional().describe("Default: what is updated, and to which version."),
    targetVersion: z
      .string()
      .regex(/^[\w.+-]{1,64}$/)
      .optional()
      .describe("Instead of the policy's."),
    startAt: Moment.optional().describe("Not before this time, at most 90 days ahead."),
    start: z.boolean().default(false).describe("`true`: starts at once. Otherwise it is a draft."),
    conflicts: z
      .enum(["refuse", "skip"])
      .default("refuse")
      .describe("What happens if another live rollout updates the same of some of these devices: refuse to start, or skip these."),
  })
  .refine(({ updatePolicyId, settings }) => (updatePolicyId === undefined) !== (settings === undefined), "give either updatePolicyId or settings");

export const rollouts = group({
  tag: "Fleet Management",
  records: { UpdatePolicy, Rollout, RolloutDevice, RolloutFailure, RolloutTrait, RolloutStep, RolloutPreview },
  operations: {
    listPolicies: query({
      ...readPolicy,
      summary: "List update policies",
      rest: ["GET /fleets/update-policies"],
      list: "page",
      input: listQuery({
        sort: ["createdAt", "name"],
        by: "-createdAt",
        filters: { q: z.string().min(1).max(100).optional().describe("Only policies whose name contains this text.") },
      }),
      output: paged(named(UpdatePolicy)),
    }),
    getPolicy: query({
      ...readPolicy,
      summary: "Get an update policy",
      rest: ["GET /fleets/update-policies/{updatePolicyId}"],
      input: onePolicy,
      output: named(UpdatePolicy),
      errors: ["UPDATE_POLICY_NOT_FOUND"],
    }),
    createPolicy: mutation({
      ...writePolicy,
      summary: "Create an update policy",
      rest: ["POST /fleets/update-policies"],
      status: 201,
      location: "/fleets/update-policies/{updatePolicyId}",
      input: UpdatePolicyInput,
      output: UpdatePolicy,
      errors: [...SETTINGS, "PLAN_LIMIT_EXCEEDED"],
    }),
    updatePolicy: mutation({
      ...writePolicy,
      summary: "Change an update policy",
      rest: ["PATCH /fleets/update-policies/{updatePolicyId}"],
      input: onePolicy.extend({ ...updatePolicyChange, version: Version.optional() }),
      output: UpdatePolicy,
      errors: [...SETTINGS, "UPDATE_POLICY_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    removePolicy: mutation({
      ...writePolicy,
      summary: "Delete an update policy",
      rest: ["DELETE /fleets/update-policies/{updatePolicyId}"],
      status: 204,
      input: onePolicy,
      output: z.null(),
      errors: ["UPDATE_POLICY_NOT_FOUND", "UPDATE_POLICY_IN_USE"],
    }),
    previewPolicy: query({
      ...readPolicy,
      summary: "See what an update policy would do",
      rest: ["POST /fleets/update-policies/preview"],
      input: z.strictObject({ policy: UpdateSettingsInput, fleetId: ref("flt").optional() }),
      output: RolloutPreview,
      errors: [...SETTINGS, "FLEET_NOT_FOUND"],
    }),
    list: query({
      ...read,
      summary: "List rollouts",
      rest: ["GET /rollouts"],
      list: "page",
      input: listQuery({
        sort: ["createdAt", "name"],
        by: "-createdAt",
        filters: {
          fleetId: ref("flt").optional().describe("Only rollouts of this fleet."),
          updatePolicyId: ref("upl").optional().describe("Only rollouts of this policy."),
          subject: z.enum(["agent", "app"]).optional().describe("Only rollouts that update this."),
          status: z.array(RolloutStatus).min(1).max(11).optional().describe("Only rollouts in one of these states, separated by commas."),
        },
      }),
      output: paged(named(Rollout)),
    }),
    get: query({ ...read, summary: "Get a rollout", rest: ["GET /rollouts/{rolloutId}"], input: one, output: named(Rollout), errors: ["ROLLOUT_NOT_FOUND"] }),
    wait: query({
      ...read,
      summary: "Wait for a rollout",
      rest: ["GET /rollouts/{rolloutId}/wait"],
      maxWaitSeconds: MAX_WAIT_SECONDS,
      input: one.extend(awaitedFields(RolloutStatus)),
      output: named(Rollout),
      errors: ["ROLLOUT_NOT_FOUND", "STREAM_LIMIT_REACHED"],
    }),
    devices: query({
      ...read,
      summary: "List the devices of a rollout",
      rest: ["GET /rollouts/{rolloutId}/devices"],
      list: "cursor",
      input: cursorQuery({
        rolloutId: ref("rlt"),
        status: z.array(RolloutDeviceStatus).min(1).max(8).optional().describe("Only devices in one of these states, separated by commas."),
        code: z.string().min(1).max(100).optional().describe("Only devices with this code."),
        phase: z.int().min(1).max(20).optional().describe("Only devices of this phase."),
        late: z.boolean().optional().describe("Only devices that are waited for, or only others."),
      }),
      output: paged(RolloutDevice),
      errors: ["ROLLOUT_NOT_FOUND"],
    }),
    failures: query({
      ...read,
      summary: "Group the failures of a rollout by their code",
      rest: ["GET /rollouts/{rolloutId}/failures"],
      list: "plain",
      input: one,
      output: z.object({ items: z.array(RolloutFailure) }),
      errors: ["ROLLOUT_NOT_FOUND"],
    }),
    steps: query({
      ...read,
      summary: "List what happened to a rollout",
      rest: ["GET /rollouts/{rolloutId}/events"],
      list: "plain",
      input: one,
      output: z.object({ items: z.array(named(RolloutStep)) }),
      errors: ["ROLLOUT_NOT_FOUND"],
    }),
    preview: query({
      ...write,
      summary: "See what a rollout would do",
      rest: ["POST /rollouts/preview"],
      input: Creation,
      output: RolloutPreview,
      errors: [...SETTINGS, ...START, "UPDATE_POLICY_NOT_FOUND"],
    }),
    create: mutation({
      ...write,
      summary: "Create a rollout",
      rest: ["POST /rollouts"],
      status: 201,
      location: "/rollouts/{rolloutId}",
      input: Creation,
      output: Rollout,
      errors: [...SETTINGS, ...START, "UPDATE_POLICY_NOT_FOUND"],
    }),
    start: mutation({
      ...operate,
      summary: "Start a rollout",
      rest: ["POST /rollouts/{rolloutId}/start"],
      input: one,
      output: Rollout,
      errors: [...CHANGE, ...START],
    }),
    pause: mutation({
      ...operate,
      summary: "Pause a rollout",
      rest: ["POST /rollouts/{rolloutId}/pause"],
      input: one.extend({ reason: Reason.optional() }),
      output: Rollout,
      errors: [...CHANGE],
    }),
    resume: mutation({
      ...operate,
      summary: "Resume a rollout",
      rest: ["POST /rollouts/{rolloutId}/resume"],
      input: one.extend({
        acceptFailures: z.boolean().default(false).describe("Needed after the threshold was exceeded or a phase failed: failures so far no longer count."),
      }),
      output: Rollout,
      errors: [...CHANGE],
    }),
    approve: mutation({
      ...approve,
      summary: "Approve a rollout, or its next phase",
      rest: ["POST /rollouts/{rolloutId}/approve"],
      input: one.extend({ note: Reason.optional() }),
      output: Rollout,
      errors: [...CHANGE, ...START, "APPROVAL_REQUIRED"],
    }),
    reject: mutation({
      ...approve,
      summary: "Reject a rollout",
      rest: ["POST /rollouts/{rolloutId}/reject"],
      input: one.extend({ reason: Reason }),
      output: Rollout,
      errors: [...CHANGE],
    }),
    promote: mutation({
      ...write,
      summary: "Begin the next phase of a rollout now",
      rest: ["POST /rollouts/{rolloutId}/promote"],
      input: one.extend({ reason: Reason }),
      output: Rollout,
      errors: [...CHANGE],
    }),
    abort: mutation({
      ...write,
      summary: "Abort a rollout",
      rest: ["POST /rollouts/{rolloutId}/abort"],
      input: one.extend({ reason: Reason }),
      output: Rollout,
      errors: [...CHANGE],
    }),
    retryFailed: mutation({
      ...write,
      summary: "Try the failed devices of a rollout again",
      rest: ["POST /rollouts/{rolloutId}/retry-failed"],
      input: one.extend({ codes: z.array(z.string().min(1).max(100)).min(1).max(50).optional().describe("Only devices that failed with one of these codes.") }),
      output: Rollout,
      errors: [...CHANGE, ...START],
    }),
    rollback: mutation({
      ...write,
      summary: "Roll a rollout back",
      rest: ["POST /rollouts/{rolloutId}/rollback"],
      status: 201,
      location: "/rollouts/{rolloutId}",
      input: one.extend({ inWindow: z.boolean().default(false).describe("`true`: only while a maintenance window is open.") }),
      output: Rollout,
      errors: [...CHANGE, ...START, "ROLLBACK_NOT_POSSIBLE"],
    }),
  },
  events: rolloutEvents,
});
