// One idempotency key per intention: the same content keeps its key, so a double click or a repetition after a failure does a thing once.
import { useRef } from "react";

const HEX = 16;
/** `crypto.randomUUID` is missing on pages over plain http. */
export const newKey = (): string => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(HEX).padStart(2, "0")).join("");

/** Gives the key of a content. */
export const useIntention = (): ((content: unknown) => string) => {
  const last = useRef<{ readonly content: string; readonly key: string } | null>(null);
  return (content) => {
    const written = JSON.stringify(content);
    if (last.current?.content !== written) last.current = { content: written, key: newKey() };
    return last.current.key;
  };
};
