// An id for an element that another one names. Those of Preact's own hook end in a number: with a number behind it, as rows have it, one would be that of
// another element.
import { useState } from "react";

let made = 0;
const next = (): string => {
  made += 1;
  return `id-${made}-`;
};

/** Stays the same while the component is there. No other component has it, nor any that begins with it. */
export const useId = (): string => useState(next)[0];
