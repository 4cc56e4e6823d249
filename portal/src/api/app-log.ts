// The log of an app as it is written: its end first, and then what comes. A hidden page follows nothing.
import type { LogBatch, LogLine } from "@mooring/client";
import { useEffect, useState, useSyncExternalStore } from "react";
import { mooring, note } from "./client.ts";
import { createThrottle } from "./throttle.ts";

export interface NumberedLine extends LogLine {
  readonly key: number;
}

export interface AppLog {
  /** The newest MAX_LINES. */
  readonly lines: readonly NumberedLine[];
  /** Lines that are missing: more came than could be sent or kept. */
  readonly skipped: number;
  readonly notice: LogBatch["notice"];
  readonly error: unknown;
  /** Whether the end of the log has been read, or could not be. */
  readonly begun: boolean;
}

export const MAX_LINES = 2_000;
const TAIL = 500;
const COLLECT_MS = 200;
const AGAIN_MS = 3_000;
const NOTHING: AppLog = { lines: [], skipped: 0, notice: null, error: null, begun: false };

const identityOf = ({ at, stream, text }: LogLine): string => `${at} ${stream} ${text}`;

const joined = (log: AppLog, added: readonly NumberedLine[]): AppLog => ({ ...log, begun: true, lines: [...log.lines, ...added].slice(-MAX_LINES) });

/** Calls `show` with what is known, at most once per COLLECT_MS, until the signal aborts. */
const follow = (appId: string, show: (log: AppLog) => void, signal: AbortSignal): void => {
  let log = NOTHING;
  let key = 0;
  /** What comes before the end of the log has been read. */
  let early: LogLine[] | null = [];
  /** Stays when lines follow: the end of the log is missing above them. */
  let tailError: unknown = null;
  const showSoon = createThrottle(
    () => {
      if (!signal.aborted) show(log);
    },
    () => COLLECT_MS,
  );
  const set = (next: AppLog): void => {
    log = next;
    showSoon();
  };
  const add = (lines: readonly LogLine[]): void => {
    const added = lines.map((line) => {
      key += 1;
      return { ...line, key };
    });
    set(joined(log, added));
  };
  const begin = (tail: readonly LogLine[]): void => {
    const known = new Set(tail.map(identityOf));
    const missing = (early ?? []).filter((line) => !known.has(identityOf(line)));
    early = null;
    add([...tail, ...missing]);
  };
  const receive = ({ lines, skipped, notice }: LogBatch): void => {
    set({ ...log, notice, error: tailError, skipped: log.skipped + skipped });
    if (early === null) add(lines);
    else early.push(...lines);
  };
  const watch = (): void => {
    if (signal.aborted) return;
    const { unsubscribe } = mooring.apps.followLogs.subscribe(
      { appId },
      {
        onData: ({ data }) => receive(data),
        onError: (error) => {
          note(error);
          set({ ...log, error });
        },
        // A stream ends when its app is gone for now, or when the gateway stops.
        onComplete: () => setTimeout(watch, AGAIN_MS),
      },
    );
    signal.addEventListener("abort", unsubscribe);
  };
  watch();
  mooring.apps.logs.query({ appId, tail: TAIL }, { signal }).then(
    ({ lines }) => begin(lines),
    (error: unknown) => {
      if (signal.aborted) return;
      note(error);
      tailError = error;
      set({ ...log, error });
      begin([]);
    },
  );
};

const useVisible = (): boolean =>
  useSyncExternalStore(
    (listener) => {
      document.addEventListener("visibilitychange", listener);
      return () => document.removeEventListener("visibilitychange", listener);
    },
    () => !document.hidden,
  );

export const useAppLog = (appId: string): AppLog & { readonly again: () => void } => {
  const [log, show] = useState(NOTHING);
  const [attempt, setAttempt] = useState(0);
  const visible = useVisible();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt begins anew
  useEffect(() => {
    if (!visible) return;
    const ended = new AbortController();
    follow(appId, show, ended.signal);
    return () => ended.abort();
  }, [appId, visible, attempt]);
  return {
    ...log,
    again: () => {
      show(NOTHING);
      setAttempt(attempt + 1);
    },
  };
};
