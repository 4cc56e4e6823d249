// Every place that holds something sealed with the master key. A seal names its place, so the compiler refuses one that this list lacks, and the
// rotation of the key and the check at start walk over the list.
export interface SealedPlace {
  readonly table: string;
  readonly columns: readonly string[];
  /** The table's primary key; its values follow the kind in the context, in this order. */
  readonly keys: readonly [string] | readonly [string, string];
}

export const SEALED = {
  "device-secret": { table: "devices", columns: ["secret", "pending_secret"], keys: ["tenant_id", "device_id"] },
  "app-secrets": { table: "apps", columns: ["secrets"], keys: ["tenant_id", "app_id"] },
  "webhook-secret": { table: "webhooks", columns: ["secret", "previous_secret"], keys: ["tenant_id", "webhook_id"] },
  "webhook-headers": { table: "webhooks", columns: ["headers"], keys: ["tenant_id", "webhook_id"] },
  "alert-channel": { table: "alert_channels", columns: ["config"], keys: ["channel_id"] },
  "tunnel-token": { table: "tunnels", columns: ["token"], keys: ["tenant_id", "tunnel_id"] },
  "domain-certificate": { table: "custom_domains", columns: ["cert_key"], keys: ["tenant_id", "domain_id"] },
  "domain-order": { table: "custom_domains", columns: ["order_key"], keys: ["tenant_id", "domain_id"] },
  "acme-account": { table: "acme_accounts", columns: ["key"], keys: ["directory_url"] },
  "backup-destination": { table: "backup_destinations", columns: ["credentials"], keys: ["tenant_id", "destination_id"] },
  "backup-repository": { table: "backup_repositories", columns: ["password"], keys: ["tenant_id", "repository_id"] },
  "backup-secrets": { table: "backups", columns: ["secrets"], keys: ["tenant_id", "backup_id"] },
  mail: { table: "mails", columns: ["content"], keys: ["mail_id"] },
  idempotency: { table: "idempotency_keys", columns: ["answer"], keys: ["tenant_id", "scope"] },
} as const satisfies Readonly<Record<string, SealedPlace>>;

/** Columns of bytes that are not sealed, with the reason. test/platform/keys/key-rotation.test.ts compares both lists with the schema. */
export const NOT_SEALED: Readonly<Record<string, string>> = {
  "installation.key_check": "sealed; the rotation replaces it last, because it says which key is in force",
  "data_export_chunks.bytes": "sealed with a derived key; the file lives for days, and after a rotation another is made",
  "import_parts.bytes": "sealed with a derived key; a file lives until its plan is made, and after a rotation it is sent again",
  "import_lines.calls": "sealed with a derived key; the plan lives for a day, and after a rotation another is made",
  "sessions.hash": "a hash",
  "sign_in_links.hash": "a hash",
  "invites.hash": "a hash",
  "stream_tickets.hash": "a hash",
  "impersonations.hash": "a hash",
  "enrollment_tokens.hash": "a hash",
  "api_keys.hash": "a hash",
  "api_keys.previous_hash": "a hash",
  "pairings.code_hash": "a hash",
  "pairings.activation_token_hash": "a hash",
  "pairings.poll_token_hash": "a hash",
  "commands.request_hash": "a hash",
  "idempotency_keys.fingerprint": "a hash",
  "bulk_parts.sha256": "a hash",
  "used_signatures.signature": "made with a device's secret",
  "audit_logs.hash": "a hash",
  "audit_logs.previous_hash": "a hash",
  "audit_chains.hash": "a hash",
  "audit_chains.anchor_hash": "a hash",
  "audit_chains.signature": "derived from the key, not sealed with it: the audit log signs its chains again",
};

export type SealedKind = keyof typeof SEALED;
/** What a seal is bound to: its kind and its row. Two kinds have no row: the check value, and what a browser keeps for ten minutes. */
export type SealedContext = `${SealedKind}|${string}` | "key-check" | "sign-in";
