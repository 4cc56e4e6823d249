// Identifies the machine's current boot, so that the gateway can tell a restarted process from a restarted machine.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

export const readBootId = (): string => {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Only Linux has a boot id; elsewhere an id of this process replaces it.
    return randomUUID();
  }
};
