// What security alerts, rules and blocks can say.
export const SEVERITIES = ["low", "medium", "high", "critical"] as const;
export const STATUSES = ["open", "acknowledged", "resolved"] as const;
export const BLOCKABLE = ["ip", "user", "device", "key"] as const;
