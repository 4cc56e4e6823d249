// The keys of the whole page: `g` and a letter go to a screen, `/` to the filter. None of them works while somebody types.
import { useEffect } from "react";

const SEQUENCE_MS = 1_500;

const isTyping = ({ target }: KeyboardEvent): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
const isInDialog = (): boolean => document.querySelector('[role="dialog"]') !== null;

/** Keys such as `?` and `g d`. */
export const useKeys = (keys: Readonly<Record<string, () => void>>): void => {
  useEffect(() => {
    let begun: { readonly key: string; readonly at: number } | null = null;
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || isInDialog()) return;
      const sequence = begun !== null && Date.now() - begun.at < SEQUENCE_MS ? `${begun.key} ${event.key}` : event.key;
      begun = { key: event.key, at: Date.now() };
      const action = keys[sequence];
      if (action === undefined) return;
      begun = null;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [keys]);
};

export const focusFilter = (): void => document.querySelector<HTMLElement>("[data-filter]")?.focus();
