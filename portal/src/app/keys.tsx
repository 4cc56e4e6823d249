// The list of keys.
import { Dialog } from "../ui/dialog.tsx";
import { Facts } from "../ui/parts.tsx";
import { nameOf } from "./place-name.ts";
import { PLACES } from "./places.ts";

const KEYS: Readonly<Record<string, string>> = {
  "Ctrl K": "go to a place, a device or an id",
  ...Object.fromEntries(PLACES.flatMap((place) => (place.key === undefined ? [] : [[`g ${place.key}`, nameOf(place)]]))),
  "/": "filter",
  "j k ↑ ↓": "next, previous row",
  "Home End": "first, last row",
  Enter: "open the row",
  Esc: "close, go back",
  c: "send a command, on a device",
  ".": "more actions of the page",
  "Alt 1 … 9": "a tab of the page",
  "[": "show icons only in the rail, or names again",
  "?": "this list",
};

export const Keys = ({ onClose }: { readonly onClose: () => void }) => (
  <Dialog title="Keys" open onClose={onClose}>
    <Facts of={KEYS} />
  </Dialog>
);
