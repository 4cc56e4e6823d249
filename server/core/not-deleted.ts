// The SQL condition for devices that have not been removed, for statements that find devices by their ids.

/**
 * Written so that the planner does not use the index over live fingerprints: before ANALYZE it underestimates live rows and scans that whole index
 * to find a few devices by their ids.
 */
export const notDeleted = (devices: string): string => `coalesce(${devices}.deleted_at, 'infinity') = 'infinity'`;
