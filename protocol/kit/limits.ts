// Rate limits by class. A class lists buckets, and a call must pass all of them; the response headers show the tightest.
// RATE_LIMIT_* overrides the figures.

/** What a bucket counts by. `input:NAME` is a field of the parsed input; `installation` counts all callers together. */
export type BucketKey = "ip" | "installation" | "credential" | "tenant" | "device" | `input:${string}`;

export interface Bucket {
  readonly name: string;
  readonly limit: number;
  readonly windowSeconds: number;
  readonly per: BucketKey;
}

const perMinute = (name: string, limit: number, per: BucketKey): Bucket => ({ name, limit, windowSeconds: 60, per });

export const LIMITS = {
  none: [],
  standard: [perMinute("standard", 100, "credential"), perMinute("tenant", 1_000, "tenant")],
  // For people's reads, instead of `standard`: a page of a console makes many. All reads of one batch count once.
  reads: [perMinute("reads", 600, "credential")],
  agent: [perMinute("agent", 100, "credential")],
  heartbeat: [perMinute("heartbeat", 60, "device")],
  inventory: [perMinute("inventory", 6, "credential")],
  // Each call makes a device read all of its disk.
  "volumes.refresh": [perMinute("standard", 100, "credential"), perMinute("tenant", 1_000, "tenant"), perMinute("volumes.refresh", 6, "input:deviceId")],
  // Each chunk may go on to another node.
  logs: [perMinute("logs", 240, "credential"), perMinute("logs.tenant", 2_400, "tenant")],
  events: [perMinute("events", 60, "credential")],
  // Each call waits for a device.
  "app.logs": [perMinute("standard", 100, "credential"), perMinute("tenant", 1_000, "tenant"), perMinute("app.logs", 30, "credential")],
  // Exporters send every few seconds, and all devices of a tenant may.
  traces: [perMinute("traces", 120, "credential"), perMinute("traces.tenant", 6_000, "tenant")],
  anonymous: [perMinute("anonymous", 60, "ip")],
  "pairing.initiate": [perMinute("pairing.initiate.ip", 5, "ip"), perMinute("pairing.initiate.fingerprint", 3, "input:device_fingerprint")],
  "pairing.prepare": [perMinute("pairing.prepare.ip", 10, "ip"), perMinute("pairing.prepare.user", 10, "credential")],
  "pairing.lookup": [perMinute("pairing.lookup.ip", 10, "ip"), perMinute("pairing.lookup.user", 10, "credential")],
  // The token's holder polls every 6 seconds. Machines of one site share an address, so it has no bucket; wrong codes and tokens count as guesses.
  "pairing.collect": [perMinute("pairing.collect.token", 10, "input:pollToken")],
  "pairing.activate": [perMinute("pairing.activate.ip", 5, "ip")],
  "pairing.status": [perMinute("pairing.status.ip", 10, "ip"), perMinute("pairing.status.fingerprint", 10, "input:device_fingerprint")],
  "pairing.autoActivate": [perMinute("pairing.autoActivate.token", 10, "input:enrollment_token")],
  "pairing.progress": [perMinute("pairing.progress.code", 10, "input:pairingCode")],
  "pairing.deviceProgress": [perMinute("pairing.progress.device", 10, "input:deviceId")],
  // Counts wrong pairing codes of all operations together; once it is exhausted the gateway checks no code. With 600 guesses a minute over
  // the 15 minutes that a code lives, one attack in 2,800 hits one of 1,000 live codes. RATE_LIMIT_PAIRING changes the second figure only
  // if it is `off`.
  "pairing.guess": [perMinute("pairing.guess.ip", 10, "ip"), perMinute("pairing.guess.all", 600, "installation")],
  "invite.token": [perMinute("invite.token.ip", 10, "ip")],
  // Each call sends a message to somebody else's service.
  "alerts.test": [perMinute("standard", 100, "credential"), perMinute("tenant", 1_000, "tenant"), perMinute("alerts.test", 10, "tenant")],
  "webhook.test": [perMinute("webhook.test", 10, "tenant")],
  "pairing.tokens": [perMinute("pairing.tokens.user", 10, "credential")],
} as const satisfies Record<string, readonly Bucket[]>;

export type LimitClass = keyof typeof LIMITS;

/** Counted in the rows, so a batch costs as much as its invites; lifted by a tenant's override of this name or of everything. */
export const INVITES_PER_HOUR = { name: "invite.create", limit: 20, windowSeconds: 3_600 } as const;

/** Concurrent live streams per node. */
export const STREAM_LIMITS = { tenant: 200, credential: 20 } as const;
