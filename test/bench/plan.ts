// The rounds and durations of the full and the quick bench.

export interface BenchPlan {
  readonly rounds: number;
  /** At most this many more rounds, to replace those that other processes spoiled. */
  readonly moreRounds: number;
  readonly warmMs: number;
  readonly windowMs: number;
}

export const FULL: BenchPlan = { rounds: 5, moreRounds: 3, warmMs: 400, windowMs: 1_500 };
export const QUICK: BenchPlan = { rounds: 3, moreRounds: 2, warmMs: 150, windowMs: 500 };

export const WEBHOOKS = { rounds: 5, tenants: 4, deliveries: 6_000 } as const;

export const LISTS = { commands: 1_000_000, devices: 200, readers: 25, createsPerSecond: 25, windowMs: 20_000 } as const;

export const TRANSFER = {
  ...{ batches: 100, rounds: 5, auditRecords: 200_000, fleets: 10_000, devices: 10_000, days: 365 },
  ...{ createsPerSecond: 25, windowMs: 20_000 },
} as const;

export const MANY = { agents: 10_000, rounds: 2, idleMs: 15_000, waiting: 20 } as const;

export const POLICY = { devices: 500, rounds: 3, callsPerSecond: 100 } as const;
export const BACKUPS = { rounds: 3, files: 16, fileBytes: 67_108_864 } as const;

export const TUNNELS = { rounds: 3, bytes: 1_073_741_824, requests: 4_000, atOnce: 16, stalled: 20, commands: 500, bytesPerSecond: 100_000_000 } as const;

export const COMMANDS = { rounds: 5, windowMs: 2_000 } as const;
