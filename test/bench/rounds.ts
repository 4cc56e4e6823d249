// Rounds of visits: all subjects run, and each round visits them in turn, every second one in reverse. The first round warms up and is dropped.
// If other processes spoil rounds, some more follow.
import { MIN_CLEAN, orderOf, type Pair, qualityOf, ratios, summarise, type Visit, type WindowQuality, wantsMore } from "./arithmetic.ts";
import { type LoaderReply, toVisit } from "./loader.ts";
import { PROCESSORS } from "./machine.ts";
import type { MetricId } from "./metrics.ts";
import type { BenchPlan } from "./plan.ts";
import type { Finding } from "./report.ts";

export interface Subject {
  readonly name: string;
  visit(): Promise<LoaderReply>;
}

/** An answer was lost, wrong or accepted when it should not have been, so the figures mean nothing. */
export class InvalidRun extends Error {
  override readonly name = "InvalidRun";
}

export interface Comparison extends Pair {
  readonly id: MetricId;
}

export interface RoundLine {
  readonly round: number;
  readonly subject: string;
  readonly verdict: WindowQuality;
  readonly microsecondsEach: number;
  readonly answersPerSecond: number;
  readonly serverUse: number;
  readonly loadUse: number;
  readonly foreign: number;
}

const digits = (value: number): number => Math.round(value * 1_000) / 1_000;

/** Checks that no answer was lost or wrong. Throws InvalidRun. */
export const checkReply = (name: string, { wrong, missing, lost, errors, refused, answers }: LoaderReply): void => {
  if (wrong + missing + lost + errors + refused > 0 || answers === 0)
    throw new InvalidRun(`${name}: ${answers} answers, ${wrong} wrong, ${missing} missing, ${lost} connections lost, ${errors} errors, ${refused} refused`);
};

const toLine = (round: number, subject: string, visit: Visit): RoundLine => ({
  round,
  subject,
  verdict: qualityOf(visit, PROCESSORS),
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

interface Rounds {
  readonly visits: readonly ReadonlyMap<string, Visit>[];
  readonly lines: readonly RoundLine[];
}

const verdictOf = (visit: Visit): WindowQuality => qualityOf(visit, PROCESSORS);

const runRounds = async (subjects: readonly Subject[], pairs: readonly Pair[], { rounds, moreRounds }: BenchPlan): Promise<Rounds> => {
  const visits: Map<string, Visit>[] = [];
  const lines: RoundLine[] = [];
  for (let round = 0; round <= rounds || (round <= rounds + moreRounds && wantsMore(visits, pairs, verdictOf)); round += 1) {
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
  return { visits, lines };
};

/** With too few clean rounds it uses all rounds, and the figure cannot meet its target. */
const toFinding = ({ visits, lines }: Rounds, { id, of, by }: Comparison): Finding => {
  const clean = ratios(visits, { of, by }, (visit) => verdictOf(visit) === "clean");
  const noisy = clean.length < MIN_CLEAN;
  const values = noisy ? ratios(visits, { of, by }, () => true) : clean;
  const { value, min, max } = summarise(values);
  const rounds = lines.filter(({ subject }) => subject === of || subject === by);
  return { id, value, span: [min, max], rounds, unsound: noisy, ...(noisy ? { note: `noisy: ${clean.length} clean rounds of ${visits.length}` } : {}) };
};

/** Visits the subjects in rounds and computes for each pair how many times cheaper one is than the other. Throws InvalidRun. */
export const compareSubjects = async (subjects: readonly Subject[], pairs: readonly Comparison[], plan: BenchPlan): Promise<readonly Finding[]> => {
  const rounds = await runRounds(subjects, pairs, plan);
  return pairs.map((pair) => toFinding(rounds, pair));
};
