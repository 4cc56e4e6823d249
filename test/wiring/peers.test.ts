// How features are made: each when somebody first reads it, once, whatever the order; one that needs itself to be made says which way.
import { describe, expect, test } from "vitest";
import { later, makeLazily } from "../../server/wiring/peers.ts";

interface Part {
  readonly name: string;
  readonly reads: () => Part | undefined;
}
interface Parts {
  readonly devices: Part;
  readonly commands: Part;
  readonly fleets: Part;
}

const open = () => {
  const made: string[] = [];
  const parts = {} as Parts;
  const part = (name: string, reads: Part["reads"]): Part => {
    made.push(name);
    return { name, reads };
  };
  makeLazily(parts, {
    devices: () => part("devices", () => parts.commands),
    commands: () => {
      const { devices } = parts;
      return part("commands", () => devices);
    },
    fleets: () => part("fleets", () => undefined),
  });
  return { parts, made };
};

describe("a feature", () => {
  test("is made when it is first read, after those that it needs, and once", () => {
    const { parts, made } = open();
    expect(made).toEqual([]);
    expect(parts.commands.reads()).toBe(parts.devices);
    expect(parts.devices.reads()).toBe(parts.commands);
    expect(made).toEqual(["devices", "commands"]);
  });

  test("that nobody reads is not made", () => {
    const { parts, made } = open();
    expect(parts.fleets.name).toBe("fleets");
    expect(made).toEqual(["fleets"]);
  });

  test("that needs itself to be made throws, and names the way", () => {
    const parts = {} as { readonly devices: readonly unknown[]; readonly commands: readonly unknown[] };
    makeLazily(parts, { devices: (): readonly unknown[] => [parts.commands], commands: (): readonly unknown[] => [parts.devices] });
    expect(() => parts.devices).toThrow("devices is not made yet: devices needs commands needs devices");
  });

  test("that could not be made is made at the next read", () => {
    let tries = 0;
    const parts = {} as { readonly devices: string };
    makeLazily(parts, {
      devices: () => {
        tries += 1;
        if (tries === 1) throw new Error("no database");
        return "devices";
      },
    });
    expect(() => parts.devices).toThrow("no database");
    expect(parts.devices).toBe("devices");
  });

  test("has a name and a value in a copy of all features", () => {
    expect(Object.keys({ ...open().parts })).toEqual(["devices", "commands", "fleets"]);
  });
});

describe("an object that is read later", () => {
  test("is read when a member is used, each time", () => {
    let reads = 0;
    const counter = later(() => {
      reads += 1;
      return { at: reads };
    });
    expect(reads).toBe(0);
    expect([counter.at, counter.at]).toEqual([1, 2]);
  });

  test("keeps the methods of a class with private fields", () => {
    class Limiter {
      #left = 1;
      take(): boolean {
        this.#left -= 1;
        return this.#left >= 0;
      }
    }
    const limiter = new Limiter();
    const read = later(() => limiter);
    expect([read.take(), read.take()]).toEqual([true, false]);
  });
});
