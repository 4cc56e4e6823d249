// A broken agent for each case of the kit: the reference agent with one thing wrong, which the case must find.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import type WebSocket from "ws";
import {
  type AgentOptions,
  createHttp,
  createMemoryJournal,
  createMemoryKeys,
  NoAnswer,
  noop,
  StoredIdentity,
  systemTime as time,
} from "../../../agent-sim/agent/index.ts";
import type { Ports } from "./reference.ts";
import { beforeRequests, changeWire, type WireChange, type WireFrame, withAnswers, withCalls } from "./wire.ts";

const wire = (change: WireChange): Partial<Ports> => ({ first: () => changeWire(change) });
const options = (change: Ports["options"]): Partial<Ports> => ({ options: change });
const ackOf = ({ op, data }: WireFrame) => (op === "ack" ? (data as { commandId: string; status: string; code?: string }) : null);
const drops = (op: string): WireChange => ({ heard: (frame) => (frame.op === op ? [] : [frame]) });
const changed = (frame: WireFrame, data: Readonly<Record<string, unknown>>): WireFrame => ({ ...frame, data: { ...frame.data, ...data } });
const body = (answer: { readonly body: unknown }) => answer.body as { data: Readonly<Record<string, unknown>> };
const journalOf = (state: string): string => join(state, "journal");
const isAck = (path: string): boolean => path.endsWith("/ack");
const tolerant = <R>(write: () => R, otherwise: R): R => {
  try {
    return write();
  } catch {
    return otherwise;
  }
};
/** Counts its calls. */
const counter = () => {
  let n = 0;
  return (): number => {
    n += 1;
    return n;
  };
};
const ignoring =
  (delayMs: number) =>
  (given: AgentOptions): AgentOptions => ({
    ...given,
    time: { ...time, after: (ms, run) => (ms === delayMs ? noop : time.after(ms, run)) },
  });

/** Pairs without a second attempt at anything. */
const enrollOnce: Ports["enroll"] = async ({ url, enrollmentToken, fingerprint }) => {
  const calls = createHttp(url, 1);
  const post = (path: string, given: unknown) => calls.call({ method: "POST", path, body: JSON.stringify(given) });
  const { data } = body(await post("/v1/pairing/initiate", { device_fingerprint: fingerprint }));
  const answer = await post("/v1/pairing/auto-activate", { enrollment_token: enrollmentToken, pairing_code: data["pairing_code"] });
  calls.close();
  return StoredIdentity.parse(body(answer).data);
};

const core: Readonly<Record<string, () => Partial<Ports>>> = {
  "PAIR-1": () => ({ identityMode: 0o644 }),
  "PAIR-2": () => ({ say: (text) => void process.stdout.write(`${text.replace(/\d{6}/, "")}\n`) }),
  "PAIR-3": () => ({ enroll: enrollOnce }),
  "PAIR-4": () => ({ enroll: enrollOnce }),
  "SIGN-1": () => ({
    first: () => {
      const count = counter();
      beforeRequests(({ headers }) => {
        if (headers["Sec-WebSocket-Key"] !== undefined && count() > 2) headers["Authorization"] = "Bearer of-nobody";
      });
    },
  }),
  "SIGN-2": () => {
    const count = counter();
    return options((given) => ({ ...given, time: { ...time, wallMs: () => time.wallMs() + 400_000 * count() } }));
  },
  "SIGN-3": () => ({
    first: () => {
      const { toISOString } = Date.prototype;
      Date.prototype.toISOString = function (this: Date) {
        return toISOString.call(this).replace(/^2000-01-01/, "1970-01-01");
      };
    },
  }),
  "CONN-1": () =>
    wire({
      refused: (response) => {
        if (response.statusCode === 401) response.statusCode = 503;
      },
    }),
  "CONN-2": () =>
    wire({
      refused: ({ headers }) => {
        if (headers.location !== undefined) http.get(new URL(headers.location, process.env["MOORING_URL"]), (answer) => answer.resume());
      },
    }),
  "CONN-3": () => options(ignoring(30_000)),
  "HELLO-1": () => wire({ sent: (frame) => (frame.op === "hello" ? [frame, { op: "heartbeat", id: "early", data: { status: "online" } }] : [frame]) }),
  "RUN-1": () => options((given) => ({ ...given, journal: { ...given.journal, begin: (...words) => given.journal.begin(...words) || true } })),
  "RUN-2": () => {
    let session = 0;
    const of = new Map<unknown, number>();
    const heard = (frame: WireFrame) => {
      if (frame.op === "ready") session += 1;
      if (frame.op === "command") of.set((frame.data["command"] as { commandId: string }).commandId, session);
      return [frame];
    };
    return wire({ heard, sent: (frame) => (ackOf(frame) !== null && of.get(frame.data["commandId"]) !== session ? [] : [frame]) });
  },
  "RUN-3": () => wire({ sent: (frame) => [ackOf(frame)?.code === "UNSUPPORTED_TYPE" ? changed(frame, { status: "failed" }) : frame] }),
  "RUN-4": () => wire({ heard: (frame) => [frame.op === "welcome" ? changed(frame, { limits: { inboundPerSec: 100_000 } }) : frame] }),
  "JOURNAL-1": () => options((given) => ({ ...given, capabilities: ["journal.v1"], journal: createMemoryJournal(time.wallMs) })),
  "JOURNAL-2": () => ({
    first: (state) => {
      if (existsSync(journalOf(state)) && !/(^|\n)$/.test(readFileSync(journalOf(state), "utf8"))) process.exit(1);
    },
  }),
  "JOURNAL-3": () => ({
    first: (state) => {
      if (!existsSync(journalOf(state))) return;
      const whole = readFileSync(journalOf(state), "utf8")
        .split("\n")
        .filter((line) => !line.includes("#"));
      writeFileSync(journalOf(state), whole.join("\n"));
    },
  }),
  "JOURNAL-4": () =>
    options((given) => {
      const { journal } = given;
      /** What the disk refuses, it takes for written. */
      const begin: typeof journal.begin = (...words) => tolerant(() => journal.begin(...words), true);
      const note: typeof journal.note = (...words) => tolerant(() => journal.note(...words), undefined);
      const finish: typeof journal.finish = (...words) => tolerant(() => journal.finish(...words), { status: "failed" });
      return { ...given, journal: { ...journal, begin, note, finish } };
    }),
  "JOURNAL-5": () => ({ lock: async () => noop }),
  "ACK-1": () => {
    const told = new Set<string>();
    return wire({
      sent: (frame) => {
        const ack = ackOf(frame);
        if (ack === null) return [frame];
        const isNew = !told.has(`${ack.commandId} ${ack.status}`);
        told.add(`${ack.commandId} ${ack.status}`);
        return isNew ? [frame] : [];
      },
    });
  },
  "BEAT-1": () => wire(drops("config")),
  "BEAT-2": () => options(ignoring(500)),
  "WAIT-1": () => wire({ closed: (code, reason) => [code, reason.replace(/ra=(\d+)\.\d+/, "ra=$1")] }),
  "WAIT-2": () => wire({ closed: (code, reason) => [code === 4777 ? 1006 : code, reason] }),
  "FORWARD-1": () => wire({ sent: (frame) => (frame.op === "error" ? [] : [frame]) }),
  "FORWARD-2": () =>
    wire({ heard: (frame) => (frame.op === "command" && !/^[\w-]+$/.test((frame.data["command"] as { commandId: string }).commandId) ? [] : [frame]) }),
};

let lastUpgradeMs = 0;
const poll: Readonly<Record<string, () => Partial<Ports>>> = {
  "POLL-1": () =>
    options(
      withAnswers(/\/commands\?/, (answer) => {
        const { "x-svc-poll-interval": _, ...headers } = answer.headers;
        return { ...answer, headers };
      }),
    ),
  "POLL-2": () =>
    options(
      withAnswers(/\/commands\?/, (answer) => {
        const { "retry-after": _, ...headers } = answer.headers;
        return { ...answer, headers, body: { ...body(answer), retryAfter: undefined } };
      }),
    ),
  "POLL-3": () => options(withAnswers(/\/commands\?/, (answer) => ({ ...answer, body: { ...body(answer), cancel: [] } }))),
  "POLL-4": () => {
    const tried = new Set<string>();
    return options(
      withCalls(async (call, next) => {
        const isNew = !tried.has(`${call.path} ${call.body}`.replaceAll(/\d\d:.*/g, ""));
        tried.add(`${call.path} ${call.body}`.replaceAll(/\d\d:.*/g, ""));
        if (isAck(call.path) && !isNew) throw new NoAnswer("it was sent before");
        return next(call);
      }),
    );
  },
  "POLL-5": () =>
    options(
      withCalls(async (call, next) => {
        try {
          return await next(call);
        } catch (error) {
          if (!isAck(call.path)) throw error;
          const commandId = decodeURIComponent(call.path.split("/").at(-2) ?? "");
          return { status: 200, headers: {}, body: { success: true, data: { commandId, status: null, result: "applied" } } };
        }
      }),
    ),
  "POLL-6": () =>
    options(
      withCalls(async (call, next) => {
        const answer = await next(call);
        if (answer.status === 409) throw new NoAnswer("a twin is no reason to wait");
        return answer;
      }),
    ),
  "POLL-7": () => ({
    first: () =>
      beforeRequests(({ headers }) => {
        if (headers["Sec-WebSocket-Key"] !== undefined) lastUpgradeMs = time.elapsedMs();
      }),
    options: (() => {
      const count = counter();
      return withCalls(async (call, next) => {
        if (/\/commands\?/.test(call.path) && count() > 2 && time.elapsedMs() - lastUpgradeMs < 2_000) throw new NoAnswer("an attempt to connect goes first");
        return next(call);
      });
    })(),
  }),
};

const openSockets = new Set<WebSocket>();
const more: Readonly<Record<string, () => Partial<Ports>>> = {
  "MORE-1": () => wire({ sent: (frame) => [frame.op === "hello" ? changed(frame, { inFlight: [] }) : frame] }),
  "MORE-2": () => wire({ heard: (frame) => [frame.op === "ready" ? changed(frame, { reconcile: [] }) : frame] }),
  "MORE-3": () =>
    options(
      withAnswers(/\/commands\?/, (answer) => ({
        ...answer,
        body: { ...body(answer), data: (body(answer).data as unknown as object[]).map((item) => ({ ...item, delivery: {} })) },
      })),
    ),
  "MORE-4": () => wire(drops("cancel")),
  "MORE-5": () =>
    wire({
      sent: (frame) =>
        ackOf(frame)?.status === "succeeded" ? [frame, { ...changed(frame, { status: "running", progress: { pct: 5 } }), id: `${frame.id}-late` }] : [frame],
    }),
  "MORE-6": () => wire({ sent: (frame) => [frame.op === "heartbeat" ? changed(frame, { inFlight: undefined }) : frame] }),
  "MORE-7": () =>
    wire({
      heard: (frame) => [frame.op === "command" ? changed(frame, { delivery: { ...(frame.data["delivery"] as object), lane: "the only one" } }) : frame],
    }),
  "STRONG-1": () => wire({ sent: (frame) => [frame.op === "hello" ? changed(frame, { capabilities: ["journal.v1"] }) : frame] }),
  "STRONG-2": () => {
    const first = new Map<string, Readonly<Record<string, string>>>();
    return options(
      withCalls((call, next) => {
        if (!isAck(call.path)) return next(call);
        const headers = first.get(call.path + call.body) ?? call.headers ?? {};
        first.set(call.path + call.body, headers);
        return next({ ...call, headers });
      }),
    );
  },
  "STRONG-3": () =>
    options((given) => ({
      ...given,
      signatureVersion: existsSync(`${process.env["MOORING_STATE"]}/signed`) ? 1 : signedOnce(),
    })),
  "STRONG-4": () => wire(drops("drain")),
  "STRONG-5": () =>
    wire({
      sent: (frame, socket) => {
        openSockets.add(socket);
        return [frame];
      },
      refused: () => {
        for (const socket of openSockets) socket.terminate();
      },
    }),
  "STRONG-6": () => options((given) => ({ ...given, keys: createMemoryKeys(given.identity.secret) })),
};
const signedOnce = (): 2 => {
  writeFileSync(`${process.env["MOORING_STATE"]}/signed`, "");
  return 2;
};

/** Changes what a handler of the host gives back. */
const afterOrders = (type: string, change: (given: unknown) => unknown) =>
  options((given) => {
    const handler = given.handlers[type];
    if (handler === undefined) return given;
    return { ...given, handlers: { ...given.handlers, [type]: { ...handler, run: async (...words) => change(await handler.run(...words)) } } };
  });
const inReports = (change: (report: Readonly<Record<string, unknown>>) => object): Partial<Ports> => ({ first: () => changeReports(change) });
/** Reports are changed before they are signed. */
const changeReports = (change: (report: Readonly<Record<string, unknown>>) => object): void => {
  const { stringify } = JSON;
  JSON.stringify = ((value: unknown, ...words: []) =>
    stringify(
      typeof value === "object" && value !== null && "apps" in value && "version" in value ? change(value as Record<string, unknown>) : value,
      ...words,
    )) as typeof stringify;
};

const apps: Readonly<Record<string, () => Partial<Ports>>> = {
  "APPS-1": () => afterOrders("app.deploy", (given) => ({ app: { ...(given as { app: object }).app, state: "installing" } })),
  "APPS-2": () =>
    wire({
      sent: (frame) => {
        const app = (frame.data["output"] as { app?: object } | undefined)?.app;
        return [ackOf(frame)?.status === "failed" && app !== undefined ? changed(frame, { output: { app: { ...app, revision: 2, state: "failed" } } }) : frame];
      },
    }),
  "APPS-3": () =>
    wire({
      heard: (frame) => {
        const command = frame.data["command"] as { type?: string; payload?: { app?: object } } | undefined;
        if (command?.type !== "app.remove") return [frame];
        return [changed(frame, { command: { ...command, payload: { ...command.payload, app: { ...command.payload?.app, keepVolumes: true } } } })];
      },
    }),
  "APPS-4": () =>
    options(
      withCalls((call, next) => {
        if (call.path === "/v1/agent/desired-state") throw new NoAnswer("commands are enough");
        return next(call);
      }),
    ),
  "APPS-5": () => wire({ sent: (frame) => [ackOf(frame)?.status === "failed" ? changed(frame, { status: "succeeded" }) : frame] }),
  "APPS-6": () => options(withAnswers(/\/logs$/, (answer) => ({ ...answer, body: { ...body(answer), data: { watched: true } } }))),
  "APPS-7": () => inReports((report) => ({ ...report, apps: (report["apps"] as object[]).map((app) => ({ ...app, restarts: 0 })) })),
  "APPS-8": () => wire({ sent: (frame) => [ackOf(frame)?.status === "failed" ? changed(frame, { status: "succeeded" }) : frame] }),
  "CARRIER-1": () => inReports((report) => ({ ...report, tunnels: undefined })),
  "CARRIER-2": () =>
    options(
      withAnswers(/\/desired-state$/, (answer) => ({
        ...answer,
        body: {
          ...body(answer),
          data: {
            ...body(answer).data,
            tunnels: ["tun_unknown", "tun_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R"].map((tunnelId) => ({ tunnelId, service: "tcp://127.0.0.1:1" })),
          },
        },
      })),
    ),
  "CARRIER-3": () => ({
    first: () => {
      const count = counter();
      beforeRequests((_, path) => {
        if (path.endsWith("/v1/agent/tunnel") && count() > 1) throw new Error("one carrier is enough");
      });
    },
  }),
};

export const BROKEN: Readonly<Record<string, () => Partial<Ports>>> = { ...core, ...poll, ...more, ...apps };
