// The implementations for one node keep the promises of all.
import { describe } from "vitest";
import { openMemoryBus, openMemoryDirectory } from "../../server/platform/bus-memory.ts";
import { createSignatureMemory } from "../../server/platform/signatures.ts";
import { busSuite } from "./bus.ts";
import { courierSuite } from "./courier.ts";
import { directorySuite } from "./directory.ts";
import { signatureSuite } from "./signatures.ts";

describe("bus in memory", () => busSuite(openMemoryBus));
describe("directory in memory", () => directorySuite(openMemoryDirectory));
describe("courier in memory", () => courierSuite(() => ({ bus: openMemoryBus(), directory: openMemoryDirectory() })));
describe("signatures in memory", () => signatureSuite(() => createSignatureMemory()));
