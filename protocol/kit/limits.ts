// Rate limits by class. A class is a list of buckets that a call must all pass; the tightest is shown in the headers.
// The figures are the interface's (100, 60, 3..10 a minute) and control-plane.md 5's; RATE_LIMIT_* can override each bucket.

/** What a bucket counts against. `input:NAME` is a field of the parsed input; `installation` counts everybody together. */
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
  agent: [perMinute("agent", 100, "credential")],
  heartbeat: [perMinute("heartbeat", 60, "device")],
  inventory: [perMinute("inventory", 6, "credential")],
  anonymous: [perMinute("anonymous", 60, "ip")],
  "pairing.initiate": [perMinute("pairing.initiate.ip", 5, "ip"), perMinute("pairing.initiate.fingerprint", 3, "input:device_fingerprint")],
  "pairing.prepare": [perMinute("pairing.prepare.ip", 10, "ip"), perMinute("pairing.prepare.user", 10, "credential")],
  "pairing.activate": [perMinute("pairing.activate.ip", 5, "ip")],
  "pairing.status": [perMinute("pairing.status.ip", 10, "ip"), perMinute("pairing.status.fingerprint", 10, "input:device_fingerprint")],
  "pairing.autoActivate": [perMinute("pairing.autoActivate.token", 10, "input:enrollment_token")],
  "pairing.progress": [perMinute("pairing.progress.code", 10, "input:pairingCode")],
  "pairing.deviceProgress": [perMinute("pairing.progress.device", 10, "input:deviceId")],
  // Counts wrong pairing codes only, whichever operation they came through; while it is used up no code is looked at. 600 guesses a minute
  // for the 15 minutes of a code's life hit one of 1,000 live codes once in 2,800 such attacks. RATE_LIMIT_PAIRING leaves the second figure
  // alone, unless it lifts both.
  "pairing.guess": [perMinute("pairing.guess.ip", 10, "ip"), perMinute("pairing.guess.all", 600, "installation")],
  "pairing.tokens": [perMinute("pairing.tokens.user", 10, "credential")],
} as const satisfies Record<string, readonly Bucket[]>;

export type LimitClass = keyof typeof LIMITS;

/** Live streams that one node serves at the same time. */
export const STREAM_LIMITS = { tenant: 200, credential: 20 } as const;
