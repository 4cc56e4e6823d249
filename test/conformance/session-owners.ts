// The promises of session owners, in memory and over Redis.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { SessionOwners } from "../../server/core/ports/agent-sessions.ts";

export const sessionOwnersSuite = (open: () => SessionOwners): void => {
  const device = () => `dev_${randomUUID()}`;

  test("a device that was never claimed has no owner", async () => {
    expect(await open().owner(device())).toBeNull();
  });

  test("the newest epoch wins in whichever order the claims arrive", async () => {
    for (const order of [
      [1, 2],
      [2, 1],
    ]) {
      const [owners, id] = [open(), device()];
      for (const epoch of order) await owners.claim(id, `node-${epoch}`, epoch);
      expect(await owners.owner(id)).toBe("node-2");
    }
  });

  test("of many claims at once the highest epoch wins", async () => {
    const [owners, id] = [open(), device()];
    await Promise.all(Array.from({ length: 50 }, (_, at) => owners.claim(id, `node-${(at * 37) % 50}`, (at * 37) % 50)));
    expect(await owners.owner(id)).toBe("node-49");
  });

  test("epochs compare as numbers: 10 is newer than 9", async () => {
    const [owners, id] = [open(), device()];
    await owners.claim(id, "old", 9);
    await owners.claim(id, "new", 10);
    await owners.claim(id, "old", 9);
    expect(await owners.owner(id)).toBe("new");
  });

  test("a repeated claim keeps the entry", async () => {
    const [owners, id] = [open(), device()];
    await owners.claim(id, "here", 3);
    await owners.claim(id, "here", 3);
    expect(await owners.owner(id)).toBe("here");
  });

  test("a release removes the entry of its own epoch only, so a late one does not hide a newer session", async () => {
    const [owners, id] = [open(), device()];
    await owners.claim(id, "old", 1);
    await owners.claim(id, "new", 2);
    await owners.release(id, 1);
    expect(await owners.owner(id)).toBe("new");
    await owners.release(id, 2);
    expect(await owners.owner(id)).toBeNull();
  });

  test("claims and releases of one turn apply in their order", async () => {
    const owners = open();
    const [gone, back] = [device(), device()];
    await Promise.all([...[gone, back].flatMap((id) => [owners.claim(id, "here", 1), owners.release(id, 1)]), owners.claim(back, "here", 2)]);
    expect([await owners.owner(gone), await owners.owner(back)]).toEqual([null, "here"]);
  });

  test("a disown removes the entry only while it names that node", async () => {
    const [owners, id] = [open(), device()];
    await owners.claim(id, "dead", 1);
    await owners.claim(id, "alive", 2);
    await owners.disown(id, "dead");
    expect(await owners.owner(id)).toBe("alive");
    await owners.disown(id, "alive");
    expect(await owners.owner(id)).toBeNull();
    await owners.disown(id, "alive");
    await owners.claim(id, "again", 1);
    expect(await owners.owner(id)).toBe("again");
  });
};
