// All scenarios in the order in which they run.

import type { Scenario } from "./scenario.ts";
import { agentScenarios } from "./scenarios/agents.ts";
import { clockScenarios } from "./scenarios/clocks.ts";
import { deadlineScenarios } from "./scenarios/deadlines.ts";
import { deafNodeScenarios } from "./scenarios/deaf-nodes.ts";
import { deathScenarios } from "./scenarios/deaths.ts";
import { firstLevelScenarios } from "./scenarios/first-level.ts";
import { floodScenarios } from "./scenarios/flood.ts";
import { foreignAnswerScenarios } from "./scenarios/foreign-answers.ts";
import { idleMemoryScenarios } from "./scenarios/idle-memory.ts";
import { killScenarios } from "./scenarios/kills.ts";
import { lateCloseScenarios } from "./scenarios/late-close.ts";
import { orderScenarios } from "./scenarios/order.ts";
import { outboxScenarios } from "./scenarios/outbox.ts";
import { ownerScenarios } from "./scenarios/owner.ts";
import { pairingRaceScenarios } from "./scenarios/pairing-race.ts";
import { pollScenarios } from "./scenarios/polling.ts";
import { presenceScenarios } from "./scenarios/presence.ts";
import { raceScenarios } from "./scenarios/races.ts";
import { revocationScenarios } from "./scenarios/revocation.ts";
import { rollingScenarios } from "./scenarios/rolling.ts";
import { rotationScenarios } from "./scenarios/rotation.ts";
import { sameKeyScenarios } from "./scenarios/same-key.ts";
import { sameKeyManyScenarios } from "./scenarios/same-key-many.ts";
import { sharedLimitScenarios } from "./scenarios/shared-limits.ts";
import { slowPeerScenarios } from "./scenarios/slow-peers.ts";
import { databaseScenarios } from "./scenarios/storage/database.ts";
import { failoverScenarios } from "./scenarios/storage/failover.ts";
import { lostCommitScenarios } from "./scenarios/storage/lost-commits.ts";
import { migrationScenarios } from "./scenarios/storage/migrations.ts";
import { oldDumpScenarios } from "./scenarios/storage/old-dump.ts";
import { refusalScenarios } from "./scenarios/storage/refusals.ts";
import { slowListScenarios } from "./scenarios/storage/slow-lists.ts";
import { stormScenarios } from "./scenarios/storm.ts";
import { twinScenarios } from "./scenarios/twins.ts";
import { unwrittenSendScenarios } from "./scenarios/unwritten-sends.ts";
import { redisScenarios } from "./scenarios/wakeups.ts";
import { webhookScenarios } from "./scenarios/webhooks.ts";
import { backupKillScenarios } from "./scenarios/workloads/backup-kills.ts";
import { bulkKillScenarios } from "./scenarios/workloads/bulk-kills.ts";
import { deployKillScenarios } from "./scenarios/workloads/deploy-kills.ts";
import { deployScenarios } from "./scenarios/workloads/deploys.ts";
import { orderKillScenarios } from "./scenarios/workloads/order-kills.ts";
import { policyKillScenarios } from "./scenarios/workloads/policy-kills.ts";
import { rolloutStepScenarios } from "./scenarios/workloads/rollout-steps.ts";
import { transferKillScenarios } from "./scenarios/workloads/transfer-kills.ts";
import { tunnelKillScenarios } from "./scenarios/workloads/tunnel-kills.ts";

export const SCENARIOS: readonly Scenario[] = [
  ...killScenarios,
  ...rollingScenarios,
  ...databaseScenarios,
  ...failoverScenarios,
  ...refusalScenarios,
  ...slowListScenarios,
  ...migrationScenarios,
  ...oldDumpScenarios,
  ...deathScenarios,
  ...agentScenarios,
  ...firstLevelScenarios,
  ...orderScenarios,
  ...raceScenarios,
  ...unwrittenSendScenarios,
  ...twinScenarios,
  ...presenceScenarios,
  ...ownerScenarios,
  ...stormScenarios,
  ...pollScenarios,
  ...foreignAnswerScenarios,
  ...redisScenarios,
  ...deafNodeScenarios,
  ...sameKeyScenarios,
  ...sameKeyManyScenarios,
  ...lostCommitScenarios,
  ...deadlineScenarios,
  ...clockScenarios,
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
  ...backupKillScenarios,
  ...policyKillScenarios,
  ...orderKillScenarios,
  ...rolloutStepScenarios,
  ...tunnelKillScenarios,
  ...bulkKillScenarios,
  ...transferKillScenarios,
];
