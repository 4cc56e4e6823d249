// Guide to saved views.
import type { Guide } from "./guide.ts";
import { AT, IDS, shownWithActors } from "./records.ts";

const viewId = "vw_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const fields = { place: "devices", name: "Offline in Lisbon", search: "status=offline&tag=site%3Alisbon", shared: true };
const view = { viewId, tenantId: IDS.tenantId, ...fields, createdBy: `user:${IDS.userId}`, version: 1, createdAt: AT, updatedAt: AT };

export const views: Guide<"views"> = {
  list: {
    description: "Lists the caller's own views and those that all share. They may name any device, so callers who are limited to some devices have none.",
    input: { place: "devices" },
    output: { items: [shownWithActors(view)], total: 1 },
  },
  get: { description: "Returns a view of the caller or one that all share.", input: { viewId }, output: shownWithActors(view) },
  create: {
    description: "Saves a view for the caller, or for all with `shared`. A person or a key has at most 100, a tenant 500.",
    input: fields,
    output: view,
  },
  update: {
    description: "Changes only the fields that you send. Send `version` or `If-Match` to get 409 `VERSION_CONFLICT` if the view has changed since you read it.",
    input: { viewId, name: "Lisbon, offline" },
    output: { ...view, name: "Lisbon, offline", version: 2 },
  },
  remove: { description: "Deletes the view, for all who share it.", input: { viewId } },
};
