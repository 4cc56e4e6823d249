// Apps and deployments change their state only as their tables say; every other change is refused and says what is possible.
import { describe, expect, test } from "vitest";
import { APP_STATUSES, DEPLOYMENT_STATUSES } from "../../../protocol/index.ts";
import { AppError } from "../../../server/core/errors.ts";
import { APP_TARGET, moveApp } from "../../../server/features/apps/states.ts";
import { DEPLOYMENT_TARGET, moveDeployment } from "../../../server/features/deployments/states.ts";

/** From each state to those after the arrow, as the design lists them, with what follows from failures and from the agent's word. */
const APPS = `pending > installing error removing
installing > running error removing
starting > running error removing
stopping > stopped error removing
restarting > running error removing
updating > running error rolling_back removing
rolling_back > running error removing
running > stopping restarting updating rolling_back removing error
stopped > starting updating removing
error > starting stopping updating rolling_back removing running stopped
removing > removed error
removed >`;
const DEPLOYMENTS = `pending > queued cancelling deleting
queued > deploying failed cancelling deleting
deploying > active failed cancelling deleting
active > updating rolling_back stopping failed deleting
failed > queued rolling_back stopping active stopped deleting
updating > active rolling_back failed deleting
rolling_back > active failed deleting
stopping > stopped failed deleting
stopped > queued deleting
cancelling > cancelled deleting
cancelled > deleting
deleting > deleted failed
deleted >`;

const read = (table: string): ReadonlyMap<string, readonly string[]> =>
  new Map(
    table.split("\n").map((line) => {
      const [from = "", to = ""] = line.split(" >");
      return [from, to.trim().split(" ").filter(Boolean)];
    }),
  );

interface Machine {
  readonly states: readonly string[];
  readonly listed: ReadonlyMap<string, readonly string[]>;
  readonly target: Readonly<Record<string, string>>;
  readonly move: (from: string, event: string) => string;
}
// as: the table has every state and event as text
const MACHINES: readonly (readonly [string, Machine])[] = [
  ["an app", { states: APP_STATUSES, listed: read(APPS), target: APP_TARGET, move: moveApp as Machine["move"] }],
  ["a deployment", { states: DEPLOYMENT_STATUSES, listed: read(DEPLOYMENTS), target: DEPLOYMENT_TARGET, move: moveDeployment as Machine["move"] }],
];

describe.each(MACHINES)("%s", (_, { states, listed, target, move }) => {
  const pairs = states.flatMap((from) => Object.entries(target).map(([event, to]) => [from, event, to] as const));

  test("has a line for each state, and an event for each state but the first", () => {
    expect([...listed.keys()].sort()).toEqual([...states].sort());
    expect([...new Set(Object.values(target))].sort()).toEqual(states.filter((state) => state !== "pending").sort());
  });

  test.each(pairs)("in %s answers %s as its table says", (from, event, to) => {
    const allowed = listed.get(from) ?? [];
    if (allowed.includes(to)) {
      expect(move(from, event)).toBe(to);
      return;
    }
    const refusal = (): unknown => {
      try {
        return move(from, event);
      } catch (error) {
        return error;
      }
    };
    const error = refusal() as AppError;
    expect(error).toBeInstanceOf(AppError);
    expect([error.code, error.status]).toEqual(["INVALID_STATE_TRANSITION", 409]);
    expect(error.details).toEqual({ from, to, allowed: expect.arrayContaining([...allowed]) });
    expect(error.details?.["allowed"]).toHaveLength(allowed.length);
  });
});
