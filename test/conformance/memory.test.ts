// The in-memory implementations keep the guarantees of all.
import { describe } from "vitest";
import { openMemoryBus, openMemorySessionOwners } from "../../server/platform/bus-memory.ts";
import { createSignatureMemory } from "../../server/platform/signatures.ts";
import { busSuite } from "./bus.ts";
import { deviceNotifierSuite } from "./device-notifier.ts";
import { sessionOwnersSuite } from "./session-owners.ts";
import { signatureSuite } from "./signatures.ts";

describe("memory bus", () => busSuite(openMemoryBus));
describe("memory directory", () => sessionOwnersSuite(openMemorySessionOwners));
describe("device notifier in memory", () => deviceNotifierSuite(() => ({ bus: openMemoryBus(), directory: openMemorySessionOwners() })));
describe("memory signatures", () => signatureSuite(() => createSignatureMemory()));
