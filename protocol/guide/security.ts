// Guide to security events, alerts, rules and blocked entities.
import type { Guide } from "./guide.ts";

export const security: Guide<"security"> = {};
