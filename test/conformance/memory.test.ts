// The implementations for one node keep the promises of all.
import { describe } from "vitest";
import { openMemoryBus, openMemorySessionOwners } from "../../server/platform/bus-memory.ts";
import { createSignatureMemory } from "../../server/platform/signatures.ts";
import { busSuite } from "./bus.ts";
import { courierSuite } from "./courier.ts";
import { sessionOwnersSuite } from "./session-owners.ts";
import { signatureSuite } from "./signatures.ts";

describe("bus in memory", () => busSuite(openMemoryBus));
describe("directory in memory", () => sessionOwnersSuite(openMemorySessionOwners));
describe("courier in memory", () => courierSuite(() => ({ bus: openMemoryBus(), directory: openMemorySessionOwners() })));
describe("signatures in memory", () => signatureSuite(() => createSignatureMemory()));
