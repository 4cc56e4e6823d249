// Rounds of visits: every subject is up, each is visited in turn, there and back; the first round warms up and is dropped.
import { judge, orderOf, type Verdict, type Visit } from "./arithmetic.ts";
import { type Reply, toVisit } from "./loader.ts";
import { PROCESSORS } from "./machine.ts";

export interface Subject {
  readonly name: string;
  visit(): Promise<Reply>;
}

/** Something was lost, wrong or accepted that should not have been: the figures are worth nothing. */
export class Untrue extends Error {
  override readonly name = "Untrue";
}

export interface Rounds {
  readonly visits: readonly ReadonlyMap<string, Visit>[];
  /** Fewer than three clean rounds for some pair: all are used, and the figure cannot meet its target. */
  readonly noisy: boolean;
  counts(visit: Visit): boolean;
  readonly lines: readonly RoundLine[];
}

export interface RoundLine {
  readonly round: number;
  readonly subject: string;
  readonly verdict: Verdict;
  readonly microsecondsEach: number;
  readonly answersPerSecond: number;
  readonly serverUse: number;
  readonly loadUse: number;
  readonly foreign: number;
}

const MIN_CLEAN = 3;
const digits = (value: number): number => Math.round(value * 1_000) / 1_000;

/** Throws Untrue. */
export const checkReply = (name: string, { wrong, missing, lost, errors, refused, answers }: Reply): void => {
  if (wrong + missing + lost + errors + refused > 0 || answers === 0)
    throw new Untrue(`${name}: ${answers} answers, ${wrong} wrong, ${missing} missing, ${lost} connections lost, ${errors} errors, ${refused} refused`);
};

const toLine = (round: number, subject: string, visit: Visit): RoundLine => ({
  round,
  subject,
  verdict: judge(visit, PROCESSORS),
  microsecondsEach: digits(visit.serverNs / 1_000 / visit.answers),
  answersPerSecond: Math.round((visit.answers * 1e9) / visit.windowNs),
  serverUse: digits(visit.serverNs / visit.windowNs),
  loadUse: digits(visit.loadNs / visit.windowNs),
  foreign: digits(Math.max(0, (visit.busyNs - visit.oursNs) / visit.windowNs / PROCESSORS)),
});

export const printLine = ({ round, subject, verdict, microsecondsEach, answersPerSecond, serverUse, loadUse, foreign }: RoundLine): void =>
  void process.stderr.write(
    `  ${String(round).padStart(2)}  ${subject.padEnd(16)}${microsecondsEach.toFixed(2).padStart(9)} us${String(answersPerSecond).padStart(9)}/s  server ${serverUse.toFixed(2)}  load ${loadUse.toFixed(2)}  foreign ${foreign.toFixed(2)}  ${verdict}\n`,
  );

export const runRounds = async (subjects: readonly Subject[], rounds: number): Promise<Rounds> => {
  const visits: Map<string, Visit>[] = [];
  const lines: RoundLine[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const visited = new Map<string, Visit>();
    for (const { name, visit } of orderOf(subjects, round)) {
      const reply = await visit();
      checkReply(name, reply);
      const line = toLine(round, name, toVisit(reply));
      printLine(line);
      if (round === 0) continue;
      visited.set(name, toVisit(reply));
      lines.push(line);
    }
    if (round > 0) visits.push(visited);
  }
  const clean = (visit: Visit): boolean => judge(visit, PROCESSORS) === "clean";
  const noisy = subjects.some(
    ({ name }) => visits.filter((round) => [...round].some(([subject, visit]) => subject === name && clean(visit))).length < MIN_CLEAN,
  );
  return { visits, lines, noisy, counts: noisy ? () => true : clean };
};
