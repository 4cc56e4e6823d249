// The list of keys.
import { Dialog } from "../ui/dialog.tsx";
import { Facts } from "../ui/parts.tsx";
import { PLACES } from "./places.ts";

const KEYS: Readonly<Record<string, string>> = {
  "Ctrl K": "go to a place, a device or an id",
  ...Object.fromEntries(PLACES.flatMap(({ key, word }) => (key === undefined ? [] : [[`g ${key}`, word]]))),
  "/": "filter",
  "j k ↑ ↓": "next, previous row",
  "Home End": "first, last row",
  Enter: "open the row",
  Esc: "close, go back",
  c: "send a command, on a device",
  "?": "this list",
};

export const Keys = ({ onClose }: { readonly onClose: () => void }) => (
  <Dialog title="Keys" open onClose={onClose}>
    <Facts of={KEYS} />
  </Dialog>
);
