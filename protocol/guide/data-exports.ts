// Guide to data exports.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER, shownWithActors } from "./records.ts";

const exportId = "exp_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const pending = {
  exportId,
  tenantId: IDS.tenantId,
  scopes: ["fleets", "webhooks"],
  format: "ndjson",
  from: null,
  to: null,
  status: "pending",
  statusReason: null,
  progress: { section: null, lines: 0 },
  counts: {},
  secretsMissing: {},
  sizeBytes: 0,
  sha256: null,
  downloadCount: 0,
  createdBy: `user:${IDS.userId}`,
  startedAt: null,
  completedAt: null,
  expiresAt: null,
  createdAt: AT,
  updatedAt: AT,
};
const completed = {
  ...pending,
  status: "completed",
  progress: { section: null, lines: 9 },
  counts: { fleet: 3, webhook: 2 },
  secretsMissing: { webhook: ["secret", "headers"] },
  sizeBytes: 1_204,
  sha256: "192b9611ab9c174de3c818f31d6a92c5932a127e347e72e3b79a66556bc2add1",
  startedAt: AT,
  completedAt: AT,
  expiresAt: AT,
};

export const dataExports: Guide<"dataExports"> = {
  list: { description: "Lists the exports of the tenant, newest first.", input: {}, output: { items: [shownWithActors(completed)], total: 1 } },
  create: {
    description:
      "Begins an export and answers at once; wait for it, or for the event `export.completed`, and then download it. All of it is of one moment. It has what you may read through the other operations, so you need their permissions as well, and no secret. A tenant makes one export at a time, and so many a day as its plan says. The file is a gzip'd text with a line of JSON for each record, a checksum for each section and a signature; `docs/import.md` describes it.",
    input: { scopes: pending.scopes },
    output: pending,
  },
  get: { description: "While it is being made, `progress` says how far it is.", input: { exportId }, output: shownWithActors(completed) },
  wait: {
    description: "Answers as soon as the export has one of the states, or after `timeout` seconds as it is then.",
    input: { exportId, status: ["completed", "failed"], timeout: 30 },
    output: shownWithActors(completed),
  },
  download: {
    description: "Every node has the file. With `Range` you get a part of it, to go on after a break. Each download is in the audit log.",
    input: { exportId },
    output: "…",
  },
  link: {
    description:
      "For a program that has no credentials, or a browser on another machine. The link works once and for 15 minutes; a new one replaces it. The download is in the audit log under your name.",
    input: { exportId },
    output: { exportId, url: "https://mooring.example/v1/export/file?token=eyJ0ZW5hbnQiOiJ0ZW4ifQ.c2lnbmF0dXJl", expiresAt: LATER },
  },
  downloadByLink: {
    description: "What `link` names. Whoever breaks off needs another link.",
    input: { token: "eyJ0ZW5hbnQiOiJ0ZW4ifQ.c2lnbmF0dXJl" },
    output: "…",
  },
  remove: { description: "An export that is being made stops. The file is gone with the answer.", input: { exportId } },
};
