// The SQL condition for devices that have not been removed, for statements that find devices by their ids.

/**
 * Not `is null`: before ANALYZE the planner underestimates live rows and would scan the whole index over live fingerprints to find a few devices by
 * their ids.
 */
export const notDeleted = (devices: string): string => `coalesce(${devices}.deleted_at, 'infinity') = 'infinity'`;
