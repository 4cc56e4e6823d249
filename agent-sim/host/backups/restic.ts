// Runs restic: as a bounded child, of low priority unless it restores, with its secrets in its environment only, and with its failures in the words of the record.
import { existsSync } from "node:fs";
import type { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createMasker } from "../../../protocol/kit/masking.ts";
import { SYSTEM_PATH } from "../../../protocol/kit/programs/file-lock.ts";
import { noop, type Time } from "../../agent/index.ts";
import { linesOf, runProgram, startProgram } from "../../children/index.ts";
import { HostClosed } from "../host.ts";
import { MARK, markedWith } from "../processes/proc.ts";
import { BackupProblem, type BackupStage } from "./problem.ts";

export const INSTALL_LINE = "install restic 0.14 or newer (Debian: apt-get install restic) and run the agent again";
/** restic tries for a quarter of an hour to reach its repository. */
const WITHIN_MS = 6 * 3_600_000;
const VERSION_WITHIN_MS = 10_000;
/** A path has at most 4 KiB, and JSON writes six bytes for one that is no text. */
const MAX_LINE_BYTES = 65_536;
const KEPT_LINES = 40;

export interface Restic {
  /** Null: there is none on this machine. */
  version(): Promise<string | null>;
  run(words: readonly string[], options: ResticRun): Promise<ResticEnd>;
  /** Ends what a former agent left running, which nobody waits for any more. */
  endLeftovers(): void;
}

export interface ResticRun {
  readonly stage: BackupStage;
  /** With RESTIC_REPOSITORY and RESTIC_PASSWORD. */
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Aborted by a cancel or a timeout. */
  readonly signal: AbortSignal;
  /** Aborted when the agent ends. */
  readonly closing: AbortSignal;
  readonly onLine?: (line: string) => void;
  /** Nobody reads its output. */
  readonly discard?: boolean;
  /** Gets its output as it comes, instead of lines. It stays open. */
  readonly into?: Writable;
  readonly onComplaint?: (line: string) => void;
  /** The exit codes that are no failure; default 0. */
  readonly codes?: readonly number[];
}

export interface ResticEnd {
  readonly code: number;
  readonly complaints: readonly string[];
}

/** restic's words, and what they mean. The first that fits counts. A status stands in brackets: a port or an id has the same digits. */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/repository is already locked|unable to create lock/i, "REPOSITORY_LOCKED"],
  [/\(507\)|insufficient storage|storage limit/i, "STORAGE_LIMIT"],
  [/no space left on device|disk quota exceeded/i, "DISK_FULL"],
  [/wrong password|no key found/i, "REPOSITORY_PASSWORD_WRONG"],
  [/unable to open config file:(?!.*bucket).*(?:no such file|\(404\)|does not exist|not found|NoSuchKey)/i, "REPOSITORY_MISSING"],
  [/no matching ID found|invalid id|snapshot.*not found|no snapshot found/i, "SNAPSHOT_MISSING"],
  [/(?:Load\(|StreamPack|ReadFull|loading tree).*(?:no such file|\(404\)|does not exist)/i, "REPOSITORY_DAMAGED"],
  [
    /is there a repository at the following location|connection refused|no such host|timeout|unexpected HTTP response|bucket .*does not exist|NoSuchBucket/i,
    "REPOSITORY_UNREACHABLE",
  ],
  [
    /ciphertext verification failed|invalid hash|not found in (?:index|repository)|unable to load|does not exist|repository contains errors|damaged|invalid data/i,
    "REPOSITORY_DAMAGED",
  ],
];

const MISSING =
  "The destination does not hold this device's repository, and nothing was made in its place. Bring it back, such as by mounting its disk; or test the destination and let it begin a new one, if the backups are lost.";

export const resticReasonOf = (text: string): string => MEANINGS.find(([words]) => words.test(text))?.[1] ?? "ENGINE_FAILED";

export class ResticFailure extends BackupProblem {
  constructor(stage: BackupStage, complaints: readonly string[], ending: string) {
    const text = complaints.join("\n");
    const reason = resticReasonOf(text);
    super({
      stage,
      reason,
      message: reason === "REPOSITORY_MISSING" ? MISSING : (complaints.findLast((line) => /fatal|error/i.test(line)) ?? complaints.at(-1) ?? ending),
      lines: [...complaints],
    });
  }
}

export interface ResticOptions {
  readonly time: Time;
  /** The agent's own folder for backups. */
  readonly folder: string;
  /** Default: `restic` of the PATH. */
  readonly program?: string;
}

export const createRestic = ({ time, folder, program = "restic" }: ResticOptions): Restic => {
  const path = `${process.env["PATH"] ?? ""}:${SYSTEM_PATH}`;
  // A process with this mark works for this agent, and for none that runs beside it.
  const base = {
    PATH: path,
    HOME: folder,
    RESTIC_CACHE_DIR: `${folder}/cache`,
    [MARK]: folder,
    GOMAXPROCS: "2",
    GOGC: "50",
    RESTIC_PROGRESS_FPS: "0.5",
    LC_ALL: "C",
  };
  let known: string | null = null;
  const endLeftovers = (): void => {
    if (!existsSync("/proc")) return;
    for (const pid of markedWith(folder)) {
      try {
        process.kill(pid, "SIGKILL");
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
      }
    }
  };
  return {
    endLeftovers,
    version: async () => {
      if (known !== null) return known;
      const asked = await runProgram({ command: program, words: ["version"], env: base, time, withinMs: VERSION_WITHIN_MS });
      known = asked.outcome === "ended" && asked.code === 0 ? (/^restic (\S+)/.exec(asked.output)?.[1] ?? null) : null;
      return known;
    },
    run: async (words, { stage, environment, cwd, signal, closing, onLine, onComplaint, discard = false, into, codes = [0] }) => {
      signal.throwIfAborted();
      if (closing.aborted) throw new HostClosed();
      const { mask } = createMasker(Object.entries(environment).flatMap(([name, value]) => (/PASSWORD|SECRET|KEY|TOKEN/.test(name) ? [value] : [])));
      const late = AbortSignal.timeout(WITHIN_MS);
      const child = startProgram({
        command: "nice",
        // Somebody waits for a restore and for a download.
        words: ["-n", words[0] === "restore" || into !== undefined ? "0" : "10", program, ...words],
        env: { ...base, ...environment },
        cwd,
        time,
        signals: [signal, closing, late],
        stdio: ["ignore", discard ? "ignore" : "pipe", "pipe"],
      });
      const complaints: string[] = [];
      const read = async (source: AsyncIterable<Uint8Array> | null, take: (line: string) => void): Promise<void> => {
        for await (const line of linesOf(source, { maxBytes: MAX_LINE_BYTES })) take(line);
      };
      const complain = (line: string): void => {
        onComplaint?.(line);
        if (line.trim() !== "") complaints.push(mask(line).replaceAll(/\/\/[^/@\s]+@/g, "//…@"));
        if (complaints.length > KEPT_LINES) complaints.shift();
      };
      const { stdout, stderr } = child.child;
      // Its end counts, and not that of the pipe: whoever reads may leave early.
      const output = into === undefined || stdout === null ? read(stdout, (line) => onLine?.(line)) : pipeline(stdout, into, { end: false }).catch(noop);
      const reading = Promise.all([output, read(stderr, complain)]);
      const { code, signal: killedBy, error } = await child.ended;
      await child.end();
      await reading;
      if (closing.aborted) throw new HostClosed();
      signal.throwIfAborted();
      if (error !== null) throw new BackupProblem({ stage, reason: "BACKUP_ENGINE_MISSING", message: `${error.message}; ${INSTALL_LINE}` });
      if (code !== null && codes.includes(code)) return { code, complaints };
      throw new ResticFailure(stage, complaints, `restic ended with ${killedBy ?? code}`);
    },
  };
};
