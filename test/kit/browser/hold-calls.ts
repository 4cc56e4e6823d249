// Holds a page's calls on their way, so that a test sees what the page shows meanwhile.
import type { Page } from "playwright-core";

export interface HeldCalls {
  readonly isHolding: () => boolean;
  /** Lets them go on, and all later ones at once. */
  readonly release: () => void;
}

/** Holds what the page asks for from now on. */
export const holdCalls = async (page: Page, url: RegExp): Promise<HeldCalls> => {
  let isHolding = false;
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(url, async (route) => {
    isHolding = true;
    await released;
    await route.continue();
  });
  return { isHolding: () => isHolding, release };
};
