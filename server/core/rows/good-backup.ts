// What counts as a good backup, for the statements of every feature that asks.

/** Whether the row `b` was read back whole, and no check since has found it damaged. */
export const goodBackup = (b: string): string => `${b}.status = 'completed' and ${b}.verification ->> 'status' <> 'failed'`;
