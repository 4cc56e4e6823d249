// Saved views: searches of a list that people keep under a name, for themselves or for all of the tenant.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { event } from "../kit/event.ts";
import { id, ref, TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";

const ViewId = id("vw");
const Timestamp = z.iso.datetime();
const Place = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,31}$/)
  .describe("The list that it shows, such as `devices`.");
const Name = z.string().trim().min(1).max(60);
const Search = z
  .string()
  .max(2_000)
  .regex(/^[^\s#]*$/, "must be the query of a URL")
  .describe("The query of the list's URL, without `?`, such as `status=offline&tag=site%3Alisbon`.");
const Shared = z.boolean().describe("`true`: everybody in the tenant sees it. `false`: only who saved it.");

export const SavedView = z.object({
  viewId: ViewId,
  tenantId: TenantId,
  place: z.string(),
  name: z.string(),
  search: z.string(),
  shared: Shared,
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type SavedView = z.infer<typeof SavedView>;

const one = z.strictObject({ viewId: ref("vw") });
const read = { auth: ["user", "apiKey"], permission: "view:read" } as const;
const write = { auth: ["user", "apiKey"], permission: "view:write" } as const;

export const views = group({
  tag: "Saved views",
  records: { SavedView },
  operations: {
    list: query({
      ...read,
      summary: "List saved views",
      rest: ["GET /views"],
      list: "page",
      input: listQuery({ sort: ["name", "createdAt"], by: "name", filters: { place: Place.optional().describe("Only views of this list.") } }),
      output: paged(named(SavedView)),
    }),
    get: query({ ...read, summary: "Get a saved view", rest: ["GET /views/{viewId}"], input: one, output: named(SavedView), errors: ["VIEW_NOT_FOUND"] }),
    create: mutation({
      ...write,
      summary: "Save a view",
      rest: ["POST /views"],
      status: 201,
      location: "/views/{viewId}",
      input: z.strictObject({ place: Place, name: Name, search: Search, shared: Shared.default(false) }),
      output: SavedView,
      errors: ["VIEW_LIMIT_REACHED"],
    }),
    update: mutation({
      ...write,
      summary: "Change a saved view",
      rest: ["PATCH /views/{viewId}"],
      input: one.extend({ name: Name.optional(), search: Search.optional(), shared: Shared.optional(), version: Version.optional() }),
      output: SavedView,
      errors: ["VIEW_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      ...write,
      summary: "Delete a saved view",
      rest: ["DELETE /views/{viewId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["VIEW_NOT_FOUND"],
    }),
  },
  events: {
    changed: event(
      "view.changed",
      z.object({ viewId: ViewId, place: z.string(), change: z.enum(["created", "updated", "deleted"]) }),
      "Somebody created, changed or deleted a view that all share",
    ),
  },
});
