// How lists of all places name one.
import { isRoot, type Place, rootOf } from "./places.ts";

/** A place as a list of all places names it: `Settings: API keys`. */
export const nameOf = (place: Place): string => {
  const word = isRoot(place) ? place.tab : place.word;
  const root = rootOf(place)?.word ?? place.word;
  return word === undefined ? root : `${root}: ${word}`;
};
