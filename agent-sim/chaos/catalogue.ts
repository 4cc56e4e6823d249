// Every scenario there is, in the order in which they run.
import { agentScenarios } from "./agents.ts";
import { databaseScenarios } from "./database.ts";
import { deadlineScenarios } from "./deadlines.ts";
import { deathScenarios } from "./deaths.ts";
import { floodScenarios } from "./flood.ts";
import { idleMemoryScenarios } from "./idle-memory.ts";
import { killScenarios } from "./kills.ts";
import { lateCloseScenarios } from "./late-close.ts";
import { pollScenarios } from "./polling.ts";
import { presenceScenarios } from "./presence.ts";
import { revocationScenarios } from "./revocation.ts";
import { sameKeyScenarios } from "./same-key.ts";
import type { Scenario } from "./scenario.ts";
import { slowPeerScenarios } from "./slow-peers.ts";
import { stormScenarios } from "./storm.ts";
import { redisScenarios } from "./wakeups.ts";

export const SCENARIOS: readonly Scenario[] = [
  ...killScenarios,
  ...databaseScenarios,
  ...deathScenarios,
  ...agentScenarios,
  ...presenceScenarios,
  ...stormScenarios,
  ...pollScenarios,
  ...redisScenarios,
  ...sameKeyScenarios,
  ...deadlineScenarios,
  ...floodScenarios,
  ...lateCloseScenarios,
  ...slowPeerScenarios,
  ...idleMemoryScenarios,
  ...revocationScenarios,
];
