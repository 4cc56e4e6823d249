// An id for an element that another one names. Preact's own hook may give one id to two elements, and a label then names the wrong one.
import { useState } from "react";

let made = 0;
const next = (): string => {
  made += 1;
  return `id-${made}`;
};

/** Stays the same while the component is there; no other component of the page has it. */
export const useId = (): string => useState(next)[0];
