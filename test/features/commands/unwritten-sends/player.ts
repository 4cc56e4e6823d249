// One device, its agent and two nodes: carries out the acts of a program and keeps what the agent has really got.
import { type AckStatus, isOpen } from "../../../../protocol/index.ts";
import type { Clock } from "../../../../server/core/clock.ts";
import { AppError } from "../../../../server/core/errors.ts";
import type { Db } from "../../../../server/platform/database/db.ts";
import { addDevice, as, asOperator, connectDevice, type DeviceRef, disconnectDevice } from "../kit.ts";
import { type Life, type LifeOptions, openCuttableBus, type Sabotage, startNode } from "./node.ts";
import type { NodeIndex, Op } from "./programs.ts";
import { type Handing, inDatabase, openCount, type Row, readRow } from "./rows.ts";

export interface Session {
  readonly epoch: number;
  readonly node: NodeIndex;
  pushing: boolean;
}
const FINAL: readonly AckStatus[] = ["succeeded", "failed", "rejected", "canceled"];
const isFinal = (word: AckStatus): boolean => FINAL.includes(word);

export const createPlayer = async (db: Db, { clock, sabotage, lists }: { clock: Clock; sabotage: Sabotage; lists: boolean }) => {
  const device: DeviceRef = await addDevice(db);
  const bus = openCuttableBus(sabotage);
  const [ids, handings, breaches]: [string[], Handing[], string[]] = [[], [], []];
  /** Of final acks that were answered as applied. */
  const won = new Map<string, AckStatus>();
  /** Has had an answer to its final ack. */
  const settled = new Set<string>();
  let session: Session | null = null;
  let epoch = 0;
  const breach = (what: string): void => void breaches.push(what);

  const hand = (given: Omit<Handing, "at" | "lost">): void => {
    const at = clock.elapsed();
    // The session that sent it was superseded meanwhile.
    const isLate = given.carrier !== "poll" && given.carrier < epoch;
    handings.push({ ...given, at, lost: isLate });
  };
  const lives: [Life, Life] = (await Promise.all([0, 1].map((index) => begin(index as NodeIndex)))) as [Life, Life];
  function begin(node: NodeIndex): Promise<Life> {
    const life: { current: Life | null } = { current: null };
    const onNode: LifeOptions["session"] = {
      takesNow: (_deviceId, sessionEpoch) => life.current?.isDead() === false && session?.node === node && session.epoch === sessionEpoch && !session.pushing,
      pushNow: (_deviceId, { command, delivery }) =>
        hand({ commandId: command.commandId, attempt: delivery.attempt, carrier: session?.epoch ?? 0, node, got: true }),
    };
    return startNode(db, { nodeId: `node-${node}`, bus, clock, sabotage, session: onNode }).then((started) => (life.current = started));
  }
  const operatorAt = (node: NodeIndex) => asOperator(lives[node].feature, device, as("admin"));
  const loseUnwritten = (node: NodeIndex): void => {
    for (const each of handings) if (each.node === node) each.lost = true;
  };
  const bury = async (node: NodeIndex): Promise<void> => {
    lives[node].doom(0);
    loseUnwritten(node);
    if (session?.node === node) session = null;
    const dead = lives[node];
    lives[node] = await begin(node);
    await dead.close();
  };
  /** Commands that the agent has and whose result is not confirmed. */
  const held = (): readonly string[] => [...new Set(handings.filter(({ got, commandId }) => got && !settled.has(commandId)).map(({ commandId }) => commandId))];

  const endAt = async (node: NodeIndex): Promise<void> => {
    const { feature, isDead } = lives[node];
    if (sabotage.endsUnwritten) return;
    feature.delivery.writeSent(device.deviceId);
    await inDatabase(() => isDead() || !feature.delivery.holds(device.deviceId));
  };

  const hello = async (node: NodeIndex, handoff: boolean): Promise<void> => {
    const { feature, isDead } = lives[node];
    const before = session;
    const inFlight = lists ? held().map((commandId) => ({ commandId, status: "received" })) : [];
    const [began, answer] = await db.sqlTx(async (tx) => {
      const at = await connectDevice(tx as unknown as Db, device, `node-${node}`);
      const start = { ...device, epoch: at, inFlight, journal: true, listsAll: lists, cancels: true, handoff };
      return [at, (await feature.delivery.settle(tx, [start]))[0]] as const;
    });
    for (const other of [0, 1] as const) if (other !== node && lives[other].feature.delivery.holds(device.deviceId)) loseUnwritten(other);
    epoch = Math.max(epoch, began);
    if (began === epoch && !isDead()) session = { epoch: began, node, pushing: false };
    answer?.notify();
    if (before !== null && before.node !== node && bus.state === "up") await endAt(before.node);
  };

  const claim = async (maxInFlight: number, lost: boolean): Promise<void> => {
    const mine = session;
    if (mine === null || mine.pushing) return;
    const { feature, isDead } = lives[mine.node];
    mine.pushing = true;
    try {
      const { commands } = await feature.delivery.claim({ deviceId: device.deviceId, epoch: mine.epoch, maxInFlight });
      if (isDead()) return;
      for (const { command, delivery } of commands) {
        hand({ commandId: command.commandId, attempt: delivery.attempt, carrier: mine.epoch, node: mine.node, got: !lost });
        await checkHanding(command.commandId, delivery.attempt);
      }
      if (commands.length > 0) await checkCredit(mine.epoch, maxInFlight);
      const done = commands.filter(({ command }) => !command.requiresAck).map(({ command }) => command.commandId);
      await feature.delivery.delivered(device, mine.epoch, done);
    } finally {
      mine.pushing = false;
    }
  };
  const checkHanding = async (commandId: string, attempt: number): Promise<void> => {
    const row = await readRow(db, commandId);
    if (row !== null && !(row.safe && row.requires_ack) && !row.sentAttempts.includes(attempt)) breach(`${commandId} was sent before that was written`);
  };
  const checkCredit = async (carrier: number, most: number): Promise<void> => {
    const open = await openCount(db, device, [...new Set(handings.filter((each) => each.carrier === carrier).map(({ commandId }) => commandId))]);
    if (open > most) breach(`a session had ${open} in flight instead of ${most}`);
  };

  const ack = async (node: NodeIndex, commandId: string, word: AckStatus): Promise<void> => {
    const { isDead, feature } = lives[node];
    const { result, status } = await feature.delivery.ack(device, { commandId, status: word });
    if (isDead()) return;
    const row = await readRow(db, commandId);
    if (isFinal(word)) settled.add(commandId);
    if (result !== "applied") return;
    if (row === null || row.ack_status === null) breach(`the ack ${word} of ${commandId} was answered and not stored`);
    if (!isFinal(word) || status === null || isOpen(status)) return;
    if (row !== null && isOpen(row.status)) breach(`the end ${word} of ${commandId} was answered and not stored`);
    if (won.has(commandId)) breach(`${commandId} ended twice: ${won.get(commandId)} and ${word}`);
    won.set(commandId, word);
  };

  const poll = async (node: NodeIndex): Promise<void> => {
    const { isDead } = lives[node];
    const items = await operatorAt(node).poll();
    if (isDead()) return;
    for (const { commandId, delivery } of items) hand({ commandId, attempt: delivery.attempt, carrier: "poll", node, got: true });
  };

  const create = async (op: Extract<Op, { kind: "create" }>): Promise<void> => {
    const { commandId } = await operatorAt(op.at).queue({
      ...(op.safe ? { type: "echo" } : { type: "shell", payload: { command: "true" } }),
      requiresAck: op.asksAck,
      ...(op.lane === null ? {} : { lane: op.lane }),
      expiresAt: op.lifeMs === null ? null : new Date(clock.elapsed() + op.lifeMs).toISOString(),
    });
    ids.push(commandId);
  };
  const end = async (): Promise<void> => {
    const before = session;
    session = null;
    if (before === null) return;
    await endAt(before.node);
    if (before.epoch === epoch) await disconnectDevice(db, device);
  };

  const handOff = async (): Promise<void> => {
    const before = session;
    if (before === null || before.pushing) return;
    // From now on it sends nothing.
    before.pushing = true;
    await endAt(before.node);
    if (session === before) await hello(before.node === 0 ? 1 : 0, true);
  };

  const perform = async (op: Op): Promise<void> => {
    switch (op.kind) {
      case "create":
        return create(op);
      case "claim":
        return claim(op.maxInFlight, op.lost);
      case "ack": {
        const commandId = [...new Set(handings.filter(({ got }) => got).map((each) => each.commandId))][op.of];
        return commandId === undefined ? undefined : ack(op.at, commandId, op.word);
      }
      case "cancel": {
        const commandId = ids[op.of];
        return commandId === undefined ? undefined : void (await operatorAt(op.at).cancel(commandId));
      }
      case "purge":
        return void (await operatorAt(op.at).run("purge", { deviceId: device.deviceId }));
      case "hello":
        return hello(op.at, false);
      case "poll":
        return poll(op.at);
      case "end":
        return end();
      case "handoff":
        return handOff();
      case "tick":
        return write();
      case "kill":
        return void lives[op.at].doom(op.after);
      case "bus":
        bus.state = op.is;
    }
  };
  const write = async (): Promise<void> => {
    await Promise.all(lives.map(({ feature }) => feature.writeSent()));
  };

  const act = async (op: Op): Promise<void> => {
    const before = [...lives];
    try {
      await perform(op);
    } catch (error) {
      // What a dying node answers does not matter; an expected refusal is an answer.
      if (!before.some((life) => life.isDead()) && !(error instanceof AppError)) throw error;
    }
  };
  return {
    device,
    handings,
    breaches,
    won,
    /** Returns once the acts have ended and dead nodes are replaced. */
    act: async (op: Op, beside: Op | null): Promise<void> => {
      const doomed = [op, beside].flatMap((each) => (each?.kind === "kill" ? [each.at] : []));
      // A death begins first, so that it falls into the act beside it.
      const all = [op, ...(beside === null ? [] : [beside])].sort((a, b) => Number(b.kind === "kill") - Number(a.kind === "kill"));
      await Promise.all(all.map(act));
      for (const node of doomed) await bury(node);
    },
    write,
    currentEpoch: () => epoch,
    held,
    ack,
    close: async (): Promise<void> => {
      await Promise.all(lives.map(({ close }) => close()));
    },
    rowsSeen: new Map<string, Row>(),
  };
};
export type Player = Awaited<ReturnType<typeof createPlayer>>;
