// A plain in-memory queue of one device, written from the state table in docs/commands.md and nothing else. The real queue must agree with it.
import type { AckStatus, CommandStatus } from "../../../../protocol/index.ts";
import type { Flushed, Op, Page } from "./programs.ts";
import type { Held, Queue } from "./queue.ts";

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const [ACK_WAIT, POLL_LEASE, CANCEL_WAIT, LATE_WINDOW] = [20 * SECOND, 60 * SECOND, 60 * SECOND, 24 * HOUR];
/** A command may have been sent for so long without having been written. */
const SENT_GRACE = SECOND;
const REDELIVERY = [20, 40, 80, 160, 300] as const;
export const WORK_TIME_SECONDS = 90;

export const emptyQueue = (now: number): Queue => ({ now, epoch: 0, connected: false, commands: [] });

const OPEN: readonly CommandStatus[] = ["queued", "sent", "acknowledged", "running", "canceling"];
const SOFT: readonly CommandStatus[] = ["expired", "timed_out", "undeliverable"];
const isOpen = (each: Held): boolean => OPEN.includes(each.status);
const waits = (each: Held): boolean => each.status === "queued";
const isInFlight = (each: Held): boolean => isOpen(each) && !waits(each);

const end = (queue: Queue, each: Held, status: CommandStatus, code: string | null): void => {
  Object.assign(each, { status, code, deadline: null, ended: queue.now });
};
const requeue = (each: Held, due: number): void => {
  Object.assign(each, { status: "queued", due, deadline: each.dies, carrier: null, workUntil: null });
};
const enterWork = (queue: Queue, each: Held, status: CommandStatus): void => {
  each.workUntil ??= queue.now + WORK_TIME_SECONDS * SECOND;
  if (each.status === "canceling") each.before = status;
  else Object.assign(each, { status, deadline: each.workUntil });
};
const earlierInLane = (queue: Queue, each: Held): readonly Held[] =>
  queue.commands.filter((other) => other.lane === each.lane && other.seq < each.seq && isOpen(other));

/** T1 */
const create = (queue: Queue, op: Extract<Op, { kind: "create" }>, id: string): void => {
  const due = queue.now + op.delaySeconds * SECOND;
  const dies = op.lifeSeconds === null ? Infinity : due + op.lifeSeconds * SECOND;
  const { asksAck, safe, maxAttempts, priority } = op;
  const fixed = { id, seq: queue.commands.length + 1, lane: op.lane ?? `cmd:${id}`, priority, asksAck, safe, maxAttempts, dies };
  const state = { attempts: 0, carrier: null, workUntil: null, before: null, ended: null, code: null, late: false, outcomeKept: false };
  queue.commands.push({ ...fixed, ...state, status: "queued", due, deadline: dies });
};

const isDue = (queue: Queue, each: Held): boolean => waits(each) && each.due <= queue.now && each.dies > queue.now;
const isWrittenLater = ({ safe, asksAck }: Held): boolean => safe && asksAck;
/** Polls leave it to the socket for a moment. */
const dueForPolls = (queue: Queue, each: Held): number => each.due + (queue.connected && isWrittenLater(each) ? SENT_GRACE : 0);

/** T2: the commands that go now, in order. */
const claimable = (queue: Queue, epoch: number, maxInFlight: number): readonly Held[] => {
  if (epoch !== queue.epoch || queue.epoch === 0) return [];
  const heads = queue.commands.filter((each) => isDue(queue, each) && earlierInLane(queue, each).length === 0);
  // This session received it before and may be working on it without having said so.
  const isKnown = (each: Held): boolean => waits(each) && each.carrier === epoch;
  const credit = Math.max(0, maxInFlight - queue.commands.filter((each) => isInFlight(each) || (isKnown(each) && each.due > queue.now)).length);
  return heads.sort((a, b) => Number(isKnown(b)) - Number(isKnown(a)) || b.priority - a.priority || a.seq - b.seq).slice(0, credit);
};
const send = (queue: Queue, each: Held, carrier: number | "poll"): void => {
  const wait = carrier === "poll" ? POLL_LEASE : ACK_WAIT;
  Object.assign(each, { status: "sent", attempts: each.attempts + 1, carrier, deadline: Math.min(queue.now + wait, each.dies) });
};

/** T3: due commands and polled ones without an ack; whole lanes, but never past a command that the agent does not hold. */
const pollable = (queue: Queue): readonly Held[] => {
  const again = (each: Held): boolean =>
    each.status === "sent" &&
    each.carrier === "poll" &&
    ((each.deadline ?? 0) > queue.now || (each.asksAck && each.attempts < each.maxAttempts && each.dies > queue.now));
  const isBarrier = (each: Held): boolean => (waits(each) && dueForPolls(queue, each) > queue.now) || (each.status === "sent" && each.carrier !== "poll");
  const free = queue.commands.filter(
    (each) => ((isDue(queue, each) && dueForPolls(queue, each) <= queue.now) || again(each)) && !earlierInLane(queue, each).some(isBarrier),
  );
  const rank = (each: Held): number => Math.min(...free.filter((other) => other.lane === each.lane && other.seq <= each.seq).map(({ priority }) => priority));
  return free
    .map((each) => ({ each, rank: rank(each) }))
    .sort((a, b) => b.rank - a.rank || a.each.seq - b.each.seq)
    .map(({ each }) => each);
};
const hand = (queue: Queue, each: Held): readonly [string, number] => {
  if (waits(each) || (each.deadline ?? 0) <= queue.now) send(queue, each, "poll");
  return [each.id, each.attempts];
};

const FINAL: readonly AckStatus[] = ["succeeded", "failed", "rejected", "canceled"];

/** T6-T9, T18-T20, T22, T23, T26 */
const hear = (queue: Queue, each: Held, word: AckStatus, progress: boolean): "applied" | "duplicate" | "conflict" => {
  if (each.status === "delivered") return "duplicate";
  if (!isOpen(each)) return hearLate(queue, each, word);
  if (!each.asksAck && each.status !== "canceling") {
    end(queue, each, "delivered", null); // T5
    return "duplicate";
  }
  if (FINAL.includes(word)) {
    const code = word === "succeeded" ? null : word !== "canceled" ? `AGENT_${word.toUpperCase()}` : each.status === "canceling" ? null : "CANCELED_BY_AGENT";
    end(queue, each, word as CommandStatus, code);
    return "applied";
  }
  if (word === "cancel_rejected") return refuseCancel(queue, each);
  const stage = each.status === "canceling" ? each.before : each.status;
  const forward = word === "received" ? stage === "queued" || stage === "sent" : stage !== "running" || (progress && each.status === "running");
  if (!forward) return "duplicate";
  enterWork(queue, each, word === "received" ? "acknowledged" : "running");
  return "applied";
};
const refuseCancel = (queue: Queue, each: Held): "applied" | "duplicate" => {
  if (each.status !== "canceling" || each.before === null) return "duplicate";
  const deadline = each.before === "sent" ? Math.min(queue.now + ACK_WAIT, each.dies) : each.workUntil;
  Object.assign(each, { status: each.before, deadline, before: null });
  return "applied";
};
const withinLateWindow = (queue: Queue, each: Held): boolean => SOFT.includes(each.status) && queue.now - (each.ended ?? 0) <= LATE_WINDOW;
const hearLate = (queue: Queue, each: Held, word: AckStatus): "applied" | "duplicate" | "conflict" => {
  if (!FINAL.includes(word) || word === each.status) return "duplicate";
  if (withinLateWindow(queue, each) && (word === "succeeded" || word === "failed")) {
    end(queue, each, word, word === "failed" ? "AGENT_FAILED" : null);
    each.late = true;
    return "applied";
  }
  if (SOFT.includes(each.status) || each.status === "canceled") each.outcomeKept = true;
  return "conflict";
};

/** T16, T17, T21 */
const cancel = (queue: Queue, each: Held, { force, unsettled = false }: { readonly force: boolean; readonly unsettled?: boolean | undefined }): void => {
  if (!isOpen(each)) return;
  const never = waits(each) && !(unsettled && queue.connected && isWrittenLater(each) && each.due <= queue.now);
  if (never || force) {
    end(queue, each, "canceled", never ? null : "CANCEL_UNCONFIRMED");
    return;
  }
  if (each.status === "canceling") return;
  const soon = queue.now + CANCEL_WAIT;
  const patience = each.dies === Infinity ? queue.now + 24 * HOUR : each.dies;
  // Perhaps sent, so its attempt counts.
  if (waits(each)) Object.assign(each, { status: "sent", attempts: each.attempts + 1, carrier: queue.epoch });
  Object.assign(each, { before: each.status, status: "canceling", deadline: queue.connected ? soon : Math.max(soon, patience) });
};

/** T10, T12-T15, T21: the reaper acts on every command that is past its deadline. */
export const reap = (queue: Queue): void => {
  for (const each of queue.commands.filter((one) => one.deadline !== null && one.deadline <= queue.now)) {
    if (waits(each)) {
      if ((each.deadline ?? 0) <= queue.now - SENT_GRACE) end(queue, each, "expired", "EXPIRED_BEFORE_DELIVERY");
    } else if (each.status === "canceling") end(queue, each, "canceled", "CANCEL_UNCONFIRMED");
    else if (each.status !== "sent") end(queue, each, "timed_out", "EXECUTION_TIMED_OUT");
    else if (each.dies <= queue.now) end(queue, each, "expired", "EXPIRED_UNACKED");
    else if (!each.asksAck) end(queue, each, "undeliverable", "DELIVERY_UNKNOWN");
    // It must not run twice and its session is gone: the next hello tells what became of it.
    else if (!each.safe && typeof each.carrier === "number" && !(queue.connected && each.carrier === queue.epoch)) each.deadline = each.dies;
    else if (each.attempts >= each.maxAttempts) end(queue, each, "undeliverable", "DELIVERY_ATTEMPTS_EXCEEDED");
    else {
      const known = typeof each.carrier === "number" && queue.connected && each.carrier === queue.epoch ? each.carrier : null;
      requeue(each, queue.now + (each.carrier === "poll" ? 0 : (REDELIVERY[each.attempts - 1] ?? 300) * SECOND));
      each.carrier = known;
    }
  }
};

/** T6, T7, T11, T13, T17, T25 for one command that was open when a session began. */
const meet = (queue: Queue, each: Held, op: Extract<Op, { kind: "hello" }>, listedAs: string | undefined): void => {
  if (each.status === "canceling" && !op.cancels && listedAs === undefined) {
    if (each.before === "sent") end(queue, each, "canceled", "CANCEL_UNCONFIRMED");
    else refuseCancel(queue, each);
  } else if (each.status === "canceling") each.deadline = Math.min(each.deadline ?? Infinity, queue.now + CANCEL_WAIT);
  else if (listedAs !== undefined) hear(queue, each, listedAs === "running" ? "running" : "received", false);
  else if (each.status === "acknowledged" || each.status === "running") {
    if (!op.listsAll) return;
    if (each.safe && each.attempts < each.maxAttempts && each.dies > queue.now) requeue(each, queue.now);
    else end(queue, each, "failed", "AGENT_LOST_STATE");
  } else if (each.status === "sent" && typeof each.carrier === "number") {
    if (op.handoff) each.carrier = queue.epoch;
    else if (each.dies <= queue.now) end(queue, each, "expired", "EXPIRED_UNACKED");
    else if (!each.asksAck || (!each.safe && !op.journal)) end(queue, each, "undeliverable", "DELIVERY_UNKNOWN");
    else if (each.attempts >= each.maxAttempts) end(queue, each, "undeliverable", "DELIVERY_ATTEMPTS_EXCEEDED");
    else requeue(each, queue.now);
  }
};
const advice = (queue: Queue, each: Held | undefined, listedAs: string): "continue" | "stop" | "forget" => {
  if (each === undefined) return "forget";
  if (each.status === "canceling" || each.status === "canceled") return "stop";
  if (isOpen(each)) return "continue";
  if (!withinLateWindow(queue, each)) return "forget";
  return (FINAL as readonly string[]).includes(listedAs) ? "continue" : "stop";
};
const hello = (queue: Queue, op: Extract<Op, { kind: "hello" }>, idOf: (index: number) => string) => {
  queue.epoch += 1;
  queue.connected = true;
  const listed = new Map(op.lists.map(({ of, as }) => [idOf(of), as]));
  for (const each of queue.commands.filter(isOpen)) meet(queue, each, op, listed.get(each.id));
  const reconcile = [...listed].map(([id, as]) => [
    id,
    advice(
      queue,
      queue.commands.find((each) => each.id === id),
      as,
    ),
  ]);
  return { epoch: queue.epoch, reconcile, queued: queue.commands.filter(waits).length };
};
type Welcome = ReturnType<typeof hello>;

interface Claim {
  readonly taken: readonly (readonly [string, number])[];
  /** Whether it is worth claiming again when a command ends. */
  readonly left: boolean;
}

/** Changes the queue and returns the answer that the caller must get. `page.seen` is the real queue's answer; beside another act, a claim may skip a locked row. */
export const play = (queue: Queue, op: Op | Flushed, page: Page): unknown => {
  const each = "of" in op ? queue.commands.find(({ id }) => id === page.idOf(op.of)) : undefined;
  const epoch = "stale" in op ? page.epoch - (op.stale ? 1 : 0) : 0;
  const listed = op.kind === "claim" ? (page.seen as Claim | null)?.taken : page.seen;
  const given = page.crowded && Array.isArray(listed) ? new Set((listed as [string, number][]).map(([id]) => id)) : null;
  switch (op.kind) {
    case "create":
      create(queue, op, String(page.seen));
      return page.seen;
    case "claim": {
      const free = claimable(queue, epoch, given === null ? op.maxInFlight : Infinity);
      const taken = given === null ? free : free.filter(({ id }) => given.has(id));
      if (page.kept !== undefined) {
        for (const one of taken) if (!isWrittenLater(one) || page.kept.has(one.id)) send(queue, one, epoch);
        return page.seen;
      }
      for (const one of taken) send(queue, one, epoch);
      // Beside another act, the answer describes the queue as it was when the claim began.
      const left = given === null ? epoch === queue.epoch && queue.epoch !== 0 && queue.commands.some(waits) : (page.seen as Claim).left;
      return { taken: taken.map(({ id, attempts }) => [id, attempts]), left };
    }
    case "poll": {
      const free = pollable(queue);
      // A poll that skips a command takes no later command of its lane.
      const passed = new Set(given === null ? [] : free.filter(({ id }) => !given.has(id)).map(({ lane, seq }) => `${lane} ${seq}`));
      const allowed =
        given === null
          ? free.slice(0, op.limit)
          : free.filter(({ id, lane, seq }) => given.has(id) && !free.some((o) => o.lane === lane && o.seq < seq && passed.has(`${lane} ${o.seq}`)));
      return allowed.map((one) => hand(queue, one));
    }
    case "flushed":
      for (const [id] of Array.isArray(page.seen) ? (page.seen as [string, number][]) : []) {
        const one = queue.commands.find((other) => other.id === id);
        if (one?.status === "sent" && one.carrier === "poll" && !one.asksAck) end(queue, one, "delivered", null); // T5
      }
      return page.seen;
    case "written":
      if (each?.status === "sent" && !each.asksAck && typeof each.carrier === "number" && each.carrier >= epoch) end(queue, each, "delivered", null);
      return null;
    case "refused":
      if (each?.status === "sent" && each.carrier === epoch) {
        requeue(each, queue.now);
        each.attempts -= 1; // T4
      }
      return null;
    case "ack":
      return each === undefined ? { status: null, result: "unknown" } : { result: hear(queue, each, op.word, op.progress), status: each.status };
    case "cancel": {
      if (each === undefined) return "COMMAND_NOT_FOUND";
      if (!isOpen(each) && each.status !== "canceled") return "COMMAND_ALREADY_FINAL";
      cancel(queue, each, { force: op.force, unsettled: page.unsettled });
      return each.status;
    }
    case "purge": {
      const waiting = queue.commands.filter(waits);
      for (const one of waiting) cancel(queue, one, { force: false, unsettled: page.unsettled });
      return waiting.length;
    }
    case "reset": {
      const open = queue.commands.filter(isOpen);
      for (const one of open) end(queue, one, "canceled", "DEVICE_RESET");
      return open.length;
    }
    case "hello": {
      const welcome = hello(queue, op, page.idOf);
      // Beside another act, the count is that of the moment when the hello began; people read it, no rule depends on it.
      return page.crowded ? { ...welcome, queued: (page.seen as Welcome).queued } : welcome;
    }
    case "crash":
      queue.connected = false;
      return null;
  }
};
