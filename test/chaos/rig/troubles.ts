// Troubles that several scenarios make: a server of the rig is killed and starts again.
import type { Rig } from "./rig.ts";

/** The nodes in turn. */
export const killNode = async ({ nodes }: Pick<Rig, "nodes">, turn: number): Promise<void> => {
  const node = nodes[turn % nodes.length];
  await node?.kill();
  await node?.start();
};

export const killPostgres = async ({ postgres }: Pick<Rig, "postgres">): Promise<void> => {
  await postgres.kill();
  await postgres.start();
};
