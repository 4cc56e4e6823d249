// The keys of the whole page: `g` and a letter go to a screen, `/` to the filter. None of them works while somebody types.
import { useLayoutEffect } from "react";

const SEQUENCE_MS = 1_500;
/** Only this key begins a sequence: any other would swallow the key after it. */
const LEADER = "g";

const isTyping = ({ target }: KeyboardEvent): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
/** A browser without popovers skips what it does not know within `:is`. */
const isInside = (): boolean => document.querySelector(":is(dialog[open], :popover-open, [data-plain]:not([hidden]))") !== null;

/** Keys such as `?` and `g d`. */
export const useKeys = (keys: Readonly<Record<string, () => void>>): void => {
  // Not useEffect: a key between what is drawn and what runs after that would still meet the keys of the page before.
  useLayoutEffect(() => {
    let begunAt = Number.NEGATIVE_INFINITY;
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || isInside()) return;
      const action = keys[event.timeStamp - begunAt < SEQUENCE_MS ? `${LEADER} ${event.key}` : event.key];
      begunAt = event.key === LEADER ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (action === undefined) return;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [keys]);
};

export const focusFilter = (): void => document.querySelector<HTMLElement>("[data-filter]")?.focus();
