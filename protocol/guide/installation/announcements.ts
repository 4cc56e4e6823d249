// Guide to announcements.
import type { Guide } from "../guide.ts";
import { AT, IDS, LATER, TOMORROW } from "../records.ts";

const announcementId = "ann_01J9ZQD0V2X4Z6B8D0F2H4K6M8";
export const announcement = {
  announcementId,
  severity: "warning",
  title: "Maintenance on Sunday, 02:00 to 03:00 UTC",
  body: "Devices stay connected; the console is read-only.",
  startsAt: AT,
  endsAt: TOMORROW,
} as const;
const managed = { ...announcement, createdBy: `user:${IDS.userId}`, version: 1, createdAt: AT, updatedAt: LATER };
const { severity, title, body } = announcement;

export const announcements: Guide<"announcements"> = {
  list: { description: "All of them, also those that have ended or not begun yet, newest first.", output: { items: [managed] } },
  get: { description: "Returns an announcement as operators see it, whether it is shown now or not.", input: { announcementId }, output: managed },
  create: {
    description:
      "Consoles show it between `startsAt` and `endsAt`, and `GET /info` lists it for everybody, signed in or not. Every node shows it within 5 seconds. 90 days after its end it is deleted.",
    input: { severity, title, body },
    output: { ...managed, endsAt: null },
  },
  update: {
    description: "Changes only the fields that you send. Who has dismissed it does not see it again; delete it and announce anew if everybody should.",
    input: { announcementId, endsAt: null, version: 1 },
    output: { ...managed, endsAt: null, version: 2 },
  },
  remove: { description: "Nobody sees it any more, at the latest after 5 seconds.", input: { announcementId } },
  dismiss: { description: "It does not come back for the caller, on any device.", input: { announcementId } },
};
