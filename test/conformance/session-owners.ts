// The guarantees of every directory of sockets, whatever its implementation.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { SessionOwnerDirectory } from "../../server/core/session-owner-directory.ts";

export const sessionOwnersSuite = (open: () => SessionOwnerDirectory): void => {
  const device = () => `dev_${randomUUID()}`;

  test("nobody holds a device that was never claimed", async () => {
    expect(await open().owner(device())).toBeNull();
  });

  test("the newest epoch wins in whatever order the claims arrive", async () => {
    for (const order of [
      [1, 2],
      [2, 1],
    ]) {
      const [directory, id] = [open(), device()];
      for (const epoch of order) await directory.claim(id, `node-${epoch}`, epoch);
      expect(await directory.owner(id)).toBe("node-2");
    }
  });

  test("of 50 claims at once the highest epoch wins", async () => {
    const [directory, id] = [open(), device()];
    await Promise.all(Array.from({ length: 50 }, (_, at) => directory.claim(id, `node-${(at * 37) % 50}`, (at * 37) % 50)));
    expect(await directory.owner(id)).toBe("node-49");
  });

  test("epochs are compared as numbers: 10 is newer than 9", async () => {
    const [directory, id] = [open(), device()];
    await directory.claim(id, "old", 9);
    await directory.claim(id, "new", 10);
    await directory.claim(id, "old", 9);
    expect(await directory.owner(id)).toBe("new");
  });

  test("claiming again keeps the entry", async () => {
    const [directory, id] = [open(), device()];
    await directory.claim(id, "here", 3);
    await directory.claim(id, "here", 3);
    expect(await directory.owner(id)).toBe("here");
  });

  test("a release removes only its own epoch, so a late goodbye does not hide a newer session", async () => {
    const [directory, id] = [open(), device()];
    await directory.claim(id, "old", 1);
    await directory.claim(id, "new", 2);
    await directory.release(id, 1);
    expect(await directory.owner(id)).toBe("new");
    await directory.release(id, 2);
    expect(await directory.owner(id)).toBeNull();
  });

  test("after concurrent claims and releases of a device the last one counts", async () => {
    const directory = open();
    const [gone, back] = [device(), device()];
    await Promise.all([...[gone, back].flatMap((id) => [directory.claim(id, "here", 1), directory.release(id, 1)]), directory.claim(back, "here", 2)]);
    expect([await directory.owner(gone), await directory.owner(back)]).toEqual([null, "here"]);
  });

  test("disown removes an entry only if it names that node, so a socket that moved stays known", async () => {
    const [directory, id] = [open(), device()];
    await directory.claim(id, "dead", 1);
    await directory.claim(id, "alive", 2);
    await directory.disown(id, "dead");
    expect(await directory.owner(id)).toBe("alive");
    await directory.disown(id, "alive");
    expect(await directory.owner(id)).toBeNull();
    await directory.disown(id, "alive");
    await directory.claim(id, "again", 1);
    expect(await directory.owner(id)).toBe("again");
  });
};
