// Guide to the audit log.
import type { Guide } from "./guide.ts";
import { AT, IDS } from "./records.ts";

const auditId = "aud_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const log = {
  auditId,
  tenantId: IDS.tenantId,
  sequence: 42,
  at: AT,
  actor: { type: "user", id: "user-1", email: "ada@example.com", name: "ada@example.com", ip: "203.0.113.7", userAgent: "curl/8.5.0" },
  action: "apiKeys.update",
  resource: { type: "api-keys", id: IDS.keyId },
  changes: [{ type: "api-keys", id: IDS.keyId, before: { name: "script", version: 1 }, after: { name: "backup script", version: 2 } }],
  omitted: 0,
  outcome: "success",
  code: null,
  requestId: "req_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
  hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  previousHash: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
};

export const audit: Guide<"audit"> = {
  list: {
    description:
      "Each change by a person, a key, an agent or an operator has one record, written with the change or not at all. Commands have their own history: see the timeline of a command.",
    input: { resource: IDS.keyId, page: 1, pageSize: 20 },
    output: { items: [log], total: 1 },
  },
  get: { description: "Returns one record. `changes` shows columns of the database, and only those that changed.", input: { auditId }, output: log },
  export: {
    description:
      "Returns up to `max` records as lines of text in `content`. Repeat it with `after` set to `next` until `next` is null. In CSV, text that a spreadsheet would take for a formula begins with an apostrophe.",
    input: { format: "ndjson", after: 0, max: 1_000 },
    output: { format: "ndjson", count: 1, next: null, content: `${JSON.stringify(log)}\n` },
  },
  exportLines: {
    description:
      "Sends all records at once, one JSON object per line. The lines of a whole log are a chain that you can verify without the gateway. The connection breaks off if the gateway cannot read on: then ask for the rest with `after`, the last `sequence` that you have.",
    input: { after: 0 },
    output: `${JSON.stringify(log)}\n`,
  },
  listInstallation: {
    description: "Only users named in `ADMIN_USERS` may call this.",
    input: { tenant: IDS.tenantId },
    output: { items: [log], total: 1 },
  },
};
