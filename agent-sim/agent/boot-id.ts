// Which boot of the machine this is: tells the gateway a restarted process from a restarted machine.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

export const readBootId = (): string => {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Only Linux has it; elsewhere an id of this process stands in.
    return randomUUID();
  }
};
