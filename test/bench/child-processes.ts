// Child processes that must not outlive the bench, whatever ends it.
import type { ChildProcess } from "node:child_process";

const living = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

export const endWithParent = <C extends ChildProcess>(child: C): C => {
  living.add(child);
  child.once("exit", () => living.delete(child));
  return child;
};
