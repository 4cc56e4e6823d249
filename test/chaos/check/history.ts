// The history of a run: one line for each step of a client or an agent. The checker relies on it alone.

import { type AgentOptions, type Delivered, NoAnswer, type PairedDevice } from "../../../agent-sim/agent/index.ts";
import type { Portal } from "../../../agent-sim/fleet/portal.ts";
import type { Shortcut } from "../rig/shortcuts.ts";

/** ok: answered 2xx; fail: refused for good; info: outcome unknown. */
export type RequestPhase = "invoke" | "ok" | "fail" | "info";

export type Line =
  | { readonly op: "queue"; readonly phase: RequestPhase; readonly id: string; readonly actor: string; readonly tMs: number; readonly commandId?: string }
  | {
      readonly op: "deliver";
      readonly phase: "info";
      readonly id: string;
      readonly actor: string;
      readonly tMs: number;
      /** The device that the payload names. */
      readonly target: string | null;
      readonly lane: string;
      readonly seq: number;
    }
  | { readonly op: "execute" | "settle"; readonly phase: "ok"; readonly id: string; readonly actor: string; readonly tMs: number }
  | { readonly op: "fault"; readonly phase: "info"; readonly id: string; readonly actor: string; readonly tMs: number };

export interface History {
  readonly lines: readonly Line[];
  add(line: Line): void;
  readonly faults: number;
}

export const createHistory = (): History => {
  const lines: Line[] = [];
  let faults = 0;
  return {
    lines,
    get faults() {
      return faults;
    },
    add: (line) => {
      lines.push(line);
      if (line.op === "fault") faults += 1;
    },
  };
};

const targetOf = ({ command }: Delivered): string | null => {
  const target = command.payload["target"];
  return typeof target === "string" ? target : null;
};

/** The same agent, recording each of its steps. */
export const watched = (base: AgentOptions, member: PairedDevice, history: History, elapsedMs: () => number): AgentOptions => {
  const actor = member.deviceId;
  return {
    ...base,
    on: {
      ...base.on,
      delivered: (commandId, channel, item) => {
        const { lane = "", seq = 0 } = item.delivery;
        history.add({ op: "deliver", phase: "info", id: commandId, actor, tMs: elapsedMs(), target: targetOf(item), lane, seq });
        base.on?.delivered?.(commandId, channel, item);
      },
      executed: (commandId, type) => {
        history.add({ op: "execute", phase: "ok", id: commandId, actor, tMs: elapsedMs() });
        base.on?.executed?.(commandId, type);
      },
      settled: (result) => {
        history.add({ op: "settle", phase: "ok", id: result.commandId, actor, tMs: elapsedMs() });
        base.on?.settled?.(result);
      },
    },
  };
};

export interface RecordedOptions {
  readonly history: History;
  readonly elapsedMs: () => number;
  /** Control: answers 2xx before the command is safe. */
  readonly shortcut?: Shortcut | null;
}

/** The same portal, recording each request. Payloads carry the request's id and target, so nothing depends on the answers. */
export const recorded = (portal: Portal, { history, elapsedMs, shortcut }: RecordedOptions): Portal => {
  let promised = 0;
  return {
    ...portal,
    queue: async (command, key, patience) => {
      const say = (phase: RequestPhase, commandId?: string): void =>
        history.add({ op: "queue", phase, id: key, actor: command.deviceId, tMs: elapsedMs(), ...(commandId === undefined ? {} : { commandId }) });
      say("invoke");
      const ask = () => portal.queue({ ...command, payload: { ...command.payload, request: key, target: command.deviceId } }, key, patience);
      if (shortcut) {
        say("ok");
        shortcut.promise(ask);
        promised += 1;
        return { commandId: `promised ${promised}`, replayed: false };
      }
      try {
        const queued = await ask();
        say("ok", queued.commandId);
        return queued;
      } catch (error) {
        say(error instanceof NoAnswer ? "info" : "fail");
        throw error;
      }
    },
  };
};
