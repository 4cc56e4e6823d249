// The in-memory implementations keep the guarantees of all.
import { describe } from "vitest";
import { openMemoryBus, openMemorySessionOwners } from "../../server/platform/cluster/bus-memory.ts";
import { createSignatureMemory } from "../../server/platform/signature-memory.ts";
import { busSuite } from "./bus.ts";
import { deviceNotifierSuite } from "./device-notifier.ts";
import { sessionOwnersSuite } from "./session-owners.ts";
import { signatureSuite } from "./signatures.ts";

describe("bus in memory", () => busSuite(openMemoryBus));
describe("session owners in memory", () => sessionOwnersSuite(openMemorySessionOwners));
describe("device notifier in memory", () => deviceNotifierSuite(() => ({ bus: openMemoryBus(), owners: openMemorySessionOwners() })));
describe("signatures in memory", () => signatureSuite(() => createSignatureMemory()));
