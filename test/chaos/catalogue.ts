// All scenarios in the order in which they run.
import { agentScenarios } from "./agents.ts";
import { databaseScenarios } from "./database.ts";
import { deadlineScenarios } from "./deadlines.ts";
import { deafNodeScenarios } from "./deaf-nodes.ts";
import { deathScenarios } from "./deaths.ts";
import { deployKillScenarios } from "./deploy-kills.ts";
import { deployScenarios } from "./deploys.ts";
import { failoverScenarios } from "./failover.ts";
import { firstLevelScenarios } from "./first-level.ts";
import { floodScenarios } from "./flood.ts";
import { idleMemoryScenarios } from "./idle-memory.ts";
import { inHandScenarios } from "./in-hand.ts";
import { killScenarios } from "./kills.ts";
import { lateCloseScenarios } from "./late-close.ts";
import { lostCommitScenarios } from "./lost-commits.ts";
import { orderScenarios } from "./order.ts";
import { outboxScenarios } from "./outbox.ts";
import { ownerScenarios } from "./owner.ts";
import { pairingRaceScenarios } from "./pairing-race.ts";
import { pollScenarios } from "./polling.ts";
import { presenceScenarios } from "./presence.ts";
import { raceScenarios } from "./races.ts";
import { revocationScenarios } from "./revocation.ts";
import { rotationScenarios } from "./rotation.ts";
import { sameKeyScenarios } from "./same-key.ts";
import { sameKeyManyScenarios } from "./same-key-many.ts";
import type { Scenario } from "./scenario.ts";
import { sharedLimitScenarios } from "./shared-limits.ts";
import { slowPeerScenarios } from "./slow-peers.ts";
import { stormScenarios } from "./storm.ts";
import { twinScenarios } from "./twins.ts";
import { redisScenarios } from "./wakeups.ts";
import { webhookScenarios } from "./webhooks.ts";

export const SCENARIOS: readonly Scenario[] = [
  ...killScenarios,
  ...databaseScenarios,
  ...failoverScenarios,
  ...deathScenarios,
  ...agentScenarios,
  ...firstLevelScenarios,
  ...orderScenarios,
  ...raceScenarios,
  ...inHandScenarios,
  ...twinScenarios,
  ...presenceScenarios,
  ...ownerScenarios,
  ...stormScenarios,
  ...pollScenarios,
  ...redisScenarios,
  ...deafNodeScenarios,
  ...sameKeyScenarios,
  ...sameKeyManyScenarios,
  ...lostCommitScenarios,
  ...deadlineScenarios,
  ...floodScenarios,
  ...lateCloseScenarios,
  ...slowPeerScenarios,
  ...idleMemoryScenarios,
  ...revocationScenarios,
  ...pairingRaceScenarios,
  ...rotationScenarios,
  ...sharedLimitScenarios,
  ...outboxScenarios,
  ...webhookScenarios,
  ...deployScenarios,
  ...deployKillScenarios,
];
