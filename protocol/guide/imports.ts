// Guide to imports and manifests.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER, shownWithActors, TOMORROW } from "./records.ts";

const importId = "imt_01J9ZQG6J8M0P2R4T6W8Y0A2C4";
const planHash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const document = `format: mooring-manifest/1
fleets:
  - name: lisbon
    selector: { tags: ["site:lisbon"] }
alert-rules:
  - name: Hot
    metric: device.cpu
    threshold: 95
    scope: { fleetIds: [fleet/lisbon] }
`;
const ready = {
  importId,
  tenantId: IDS.tenantId,
  format: "manifest",
  origin: "written",
  mode: "merge",
  conflict: "overwrite",
  sendInvites: false,
  lenient: false,
  status: "ready",
  statusReason: null,
  upload: null,
  deletesToConfirm: null,
  planHash,
  lines: 2,
  counts: { create: 1, update: 1 },
  applied: { succeeded: 0, failed: 0 },
  createdBy: `user:${IDS.userId}`,
  createdAt: AT,
  readyAt: AT,
  completedAt: null,
  expiresAt: TOMORROW,
} as const;
const done = { ...ready, status: "completed", applied: { succeeded: 2, failed: 0 }, completedAt: LATER } as const;
const lines = [
  {
    n: 1,
    line: 3,
    kind: "fleet",
    key: "lisbon",
    action: "create",
    code: null,
    message: null,
    changes: [],
    recordId: null,
    status: "pending",
  },
  {
    n: 2,
    line: 6,
    kind: "alert-rule",
    key: "Hot",
    action: "update",
    code: null,
    message: null,
    changes: [{ field: "threshold", from: 90, to: 95 }],
    recordId: "arl_01J9ZQD2G4J6M8P0R3T5W7Y9A1",
    status: "pending",
  },
] as const;

export const imports: Guide<"imports"> = {
  manifest: {
    description:
      "One YAML text of what the tenant should have, to keep in git: settings, fleets, policies, rules, webhooks, roles, deployments and others, with names in place of ids (`fleet/lisbon`) and without secrets or history. `POST /v1/imports` reads it back.",
    output: document,
  },
  list: { description: "Those of the last 90 days.", output: { items: [shownWithActors(ready)], total: 1 } },
  create: {
    description:
      "Makes a plan and changes nothing: for each record of the document whether it is created, updated, unchanged, skipped or refused, as `report` lists it. A record is found by its id if that is one of this tenant, else by its name among others of its kind. References are ids of the same document or tenant, or `kind/name`. A line that refers to nothing is refused, and those that need it, and no other. Devices, keys, sessions and history are never made; members become invites, if `sendInvites` says so. The document is a manifest in YAML, or the lines of a data export, which its checksums guard; a longer export is sent as a file, with `upload`. With `mode: replace`, which only owners may ask for, the plan also deletes what a kind of the document has here and the document lacks; devices and members never.",
    input: { document, conflict: "overwrite" },
    output: ready,
  },
  upload: {
    description:
      "Takes the file of a data export as it was downloaded, for an import that was created without a document: as a whole, or in parts of 256 KiB to 4 MiB, one after the other, each with its `Content-Range`. A part that has come before is taken again without effect, so whoever lost an answer repeats it; `upload.receivedBytes` says where to go on. After the last part the file is read in the background, and `wait` tells when the import is `ready`, or `failed` with the line that cannot be read. A file has 100 MiB, a line 1 MiB, and a text 1 GiB at most; it may be a hundred times as long as its file, and have 100,000 records besides history.",
    input: { importId, part: "H4sIAAAAAAAAA6uu5QIABrCh3QMAAAA=" },
    output: {
      ...ready,
      format: "export",
      origin: "foreign",
      status: "validating",
      planHash: null,
      lines: 0,
      counts: {},
      readyAt: null,
      upload: { receivedBytes: 23, sizeBytes: 23 },
    },
  },
  get: { description: "What its plan does, by numbers, and how far it has been carried out.", input: { importId }, output: shownWithActors(done) },
  wait: {
    description: "Answers when it has one of the states, or after `timeout` seconds with the state of then.",
    input: { importId, status: ["completed", "completed_with_errors", "failed"], timeout: 30 },
    output: shownWithActors(done),
  },
  report: {
    description: "One row for each record of the document, in the order in which they are carried out.",
    input: { importId },
    output: { items: [...lines], total: 2 },
  },
  apply: {
    description:
      "Carries out exactly the plan with this hash, in the background, by the operations that people call, as you: each line needs the permission of its operation, counts for the plan, and leaves its audit record and event. What has changed since the plan was made fails with `VERSION_CONFLICT` instead of being overwritten. A node that dies leaves no line half done. A signed-in person needs a sign-in of the last ten minutes.",
    input: { importId, planHash },
    output: { ...ready, status: "applying" },
  },
  remove: { description: "An import that is being carried out stops after the line that it is at; its record stays.", input: { importId }, output: null },
};
