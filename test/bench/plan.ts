// How long and how often: the whole measure, and the quick one.

export interface Plan {
  readonly rounds: number;
  /** At most so many besides, in the place of those that others spoilt. */
  readonly moreRounds: number;
  readonly warmMs: number;
  readonly windowMs: number;
}

export const FULL: Plan = { rounds: 5, moreRounds: 3, warmMs: 400, windowMs: 1_500 };
export const QUICK: Plan = { rounds: 3, moreRounds: 2, warmMs: 150, windowMs: 500 };

export const COMMANDS = { rounds: 5, windowMs: 2_000 } as const;
