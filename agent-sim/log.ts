// What agent and connector log, a line each: for people, or for programs with the fields of the gateway's own log.
import type { Time } from "./agent/index.ts";

export const LOG_FORMATS = ["text", "json"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** Numbers as pino has them. */
const LEVELS = { info: 30, warn: 40 } as const;

export type AgentLog = (text: string, level?: keyof typeof LEVELS) => void;

export const createAgentLog =
  (format: LogFormat, { wallMs }: Pick<Time, "wallMs">): AgentLog =>
  (text, level = "info") => {
    const at = new Date(wallMs()).toISOString();
    const line = format === "text" ? `${at} ${text}` : JSON.stringify({ level: LEVELS[level], time: at, service: "mooring-agent", msg: text });
    process.stdout.write(`${line}\n`);
  };
