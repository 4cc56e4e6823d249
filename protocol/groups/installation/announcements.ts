// Announcements: what the people who run the installation tell everybody who uses it, such as a maintenance.
import { z } from "zod";
import { Moment, Version } from "../../kit/bounds.ts";
import { id, ref } from "../../kit/ids.ts";
import { group, mutation, query } from "../../kit/operation.ts";

const Timestamp = z.iso.datetime();
const Severity = z.enum(["info", "warning", "critical"]).describe("`critical` stays on the screen until it ends; people can dismiss the others.");
const Title = z.string().trim().min(1).max(120);
const Body = z.string().trim().max(2_000).describe("Plain text.");

/** As everybody reads it. */
export const Announcement = z.object({
  announcementId: id("ann"),
  severity: Severity,
  title: z.string(),
  body: z.string(),
  startsAt: Timestamp.describe("From then on it is shown."),
  endsAt: Timestamp.nullable().describe("From then on it is not. `null`: until it is deleted."),
});
export type Announcement = z.infer<typeof Announcement>;

export const ManagedAnnouncement = Announcement.extend({ createdBy: z.string(), version: z.int(), createdAt: Timestamp, updatedAt: Timestamp });
export type ManagedAnnouncement = z.infer<typeof ManagedAnnouncement>;

const one = z.strictObject({ announcementId: ref("ann") });
const operators = { auth: ["user"], permission: "platform", tenancy: "none" } as const;

export const announcements = group({
  tag: "Announcements",
  records: { Announcement, ManagedAnnouncement },
  operations: {
    list: query({
      ...operators,
      summary: "List all announcements",
      rest: ["GET /admin/announcements"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(ManagedAnnouncement) }),
    }),
    get: query({
      ...operators,
      summary: "Get an announcement",
      rest: ["GET /admin/announcements/{announcementId}"],
      input: one,
      output: ManagedAnnouncement,
      errors: ["ANNOUNCEMENT_NOT_FOUND"],
    }),
    create: mutation({
      ...operators,
      summary: "Announce something to everybody",
      rest: ["POST /admin/announcements"],
      status: 201,
      location: "/admin/announcements/{announcementId}",
      input: z.strictObject({
        severity: Severity.default("info"),
        title: Title,
        body: Body.default(""),
        startsAt: Moment.optional().describe("Default: now."),
        endsAt: Moment.nullable().default(null),
      }),
      output: ManagedAnnouncement,
      errors: ["ANNOUNCEMENT_LIMIT_REACHED", "ANNOUNCEMENT_PERIOD_INVALID"],
    }),
    update: mutation({
      ...operators,
      summary: "Change an announcement",
      rest: ["PATCH /admin/announcements/{announcementId}"],
      input: one.extend({
        severity: Severity.optional(),
        title: Title.optional(),
        body: Body.optional(),
        startsAt: Moment.optional(),
        endsAt: Moment.nullable().optional(),
        version: Version.optional(),
      }),
      output: ManagedAnnouncement,
      errors: ["ANNOUNCEMENT_NOT_FOUND", "VERSION_CONFLICT", "ANNOUNCEMENT_PERIOD_INVALID"],
    }),
    remove: mutation({
      ...operators,
      summary: "Delete an announcement",
      rest: ["DELETE /admin/announcements/{announcementId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["ANNOUNCEMENT_NOT_FOUND"],
    }),
    dismiss: mutation({
      auth: ["user"],
      permission: "self",
      tenancy: "none",
      summary: "Dismiss an announcement",
      rest: ["POST /account/announcements/{announcementId}/dismiss"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["ANNOUNCEMENT_NOT_FOUND", "ANNOUNCEMENT_NOT_DISMISSIBLE"],
    }),
  },
});
