// The commands about backups and volumes. The agent checks the orders by the contract's schemas and answers in its words.
import { z } from "zod";
import { volumes as volumeGroup } from "../../../protocol/groups/volumes.ts";
import { type CommandHandler, type CommandHandlers, HandlerFailure, InvalidPayload, noop, type Time } from "../../agent/index.ts";
import type { HostData } from "../app-data.ts";
import { HostClosed } from "../host.ts";
import { measure } from "../volumes.ts";
import { type BackupEngine, COMMANDS } from "./engine.ts";
import { BackupProblem, toBackupProblem } from "./problem.ts";

const { scan, remove } = volumeGroup.commands;
const MAX_VOLUMES = 1_000;

type Run<P> = (order: P, context: Parameters<CommandHandler["run"]>[1]) => Promise<unknown>;

const handlerOf = <S extends z.ZodType>(schema: S, run: Run<z.output<S>>): CommandHandler => ({
  long: true,
  cancelable: true,
  endsItself: true,
  // The engine finds what an earlier run has done.
  repeatable: true,
  run: async (payload, context) => {
    const order = schema.safeParse(payload);
    if (!order.success) throw new InvalidPayload(z.prettifyError(order.error).slice(0, 500));
    try {
      return await run(order.data, context);
    } catch (error) {
      // The command stays unfinished, so that the next start carries it on.
      if (error instanceof HostClosed) return new Promise<never>(noop);
      if (context.signal.aborted && error === context.signal.reason) throw error;
      const problem = toBackupProblem(error, "preparing");
      if (problem instanceof HandlerFailure) throw problem;
      throw error;
    }
  },
});

export const createBackupHandlers = (engine: BackupEngine): CommandHandlers =>
  Object.fromEntries(
    (Object.keys(COMMANDS) as (keyof typeof COMMANDS)[]).map((name) => {
      const { type, payload } = COMMANDS[name];
      // as: the engine's function of this name takes this schema's output
      const carryOut = engine[name] as (order: unknown, context: Parameters<CommandHandler["run"]>[1]) => Promise<unknown>;
      return [type, handlerOf(payload, (order, context) => carryOut(order, context))];
    }),
  );

export interface VolumeHandlerOptions {
  readonly data: Pick<HostData, "volumes" | "removeVolume">;
  readonly time: Time;
}

export const createVolumeHandlers = ({ data, time }: VolumeHandlerOptions): CommandHandlers => ({
  [scan.type]: handlerOf(scan.payload, async ({ budgetSeconds }, { signal }): Promise<z.input<typeof scan.output>> => {
    const startedMs = time.elapsedMs();
    const found = (await data.volumes()).slice(0, MAX_VOLUMES);
    const untilMs = startedMs + budgetSeconds * 1_000;
    const volumes: z.input<typeof scan.output>["volumes"] = [];
    for (const { path, labels, appId, ...volume } of found)
      volumes.push({ ...volume, appId: appId as never, mountpoint: path, labels: { ...labels }, ...(await measure(path, { time, untilMs, signal })) });
    signal.throwIfAborted();
    return { volumes, seconds: Math.round(time.elapsedMs() - startedMs) / 1_000 };
  }),
  [remove.type]: handlerOf(remove.payload, async ({ name }, { signal }): Promise<z.input<typeof remove.output>> => {
    const found = (await data.volumes()).find((volume) => volume.name === name);
    if (found === undefined) return { removed: false, freedBytes: null };
    if (found.appId !== null) throw new BackupProblem({ stage: "removing", reason: "VOLUME_IN_USE", message: `the volume belongs to ${found.appId}` });
    const { size } = await measure(found.path, { time, untilMs: time.elapsedMs() + 60_000, signal });
    return { removed: await data.removeVolume(name), freedBytes: size ?? null };
  }),
});
