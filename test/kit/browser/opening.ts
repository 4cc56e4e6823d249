// Tests that each open what they look at. They share nothing in their file, so several of them can run at once.
import { test } from "vitest";

interface Opened {
  close(): Promise<void>;
}

/** A test whose context has `open`. It closes what that gave to the test when the test is over. */
export const testOpening = <Args extends readonly unknown[], T extends Opened>(open: (...args: Args) => Promise<T>) =>
  test.extend<{ readonly open: (...args: Args) => Promise<T> }>({
    // biome-ignore lint/correctness/noEmptyPattern: the runner reads the names of fixtures from this pattern
    open: async ({}, use) => {
      const opened: T[] = [];
      await use(async (...args) => {
        const made = await open(...args);
        opened.push(made);
        return made;
      });
      for (const each of opened) await each.close();
    },
  });
