// The form of the frame: a rail with names, a rail of icons, or a phone's bars. Somebody may choose icons, which this browser remembers.
import { createStore } from "../../api/store.ts";

export type Form = "names" | "icons" | "phone";
const KEY = "mooring.rail";
const phone = matchMedia("(max-width: 760px)");
const tight = matchMedia("(max-width: 1100px)");

const formNow = (): Form => (phone.matches ? "phone" : tight.matches || localStorage.getItem(KEY) === "icons" ? "icons" : "names");
/** `isTight`: the settings have no room for their list beside them. */
export const layout = createStore<{ readonly form: Form; readonly isTight: boolean }>({ form: formNow(), isTight: tight.matches });
const look = (): void => {
  const [form, isTight] = [formNow(), tight.matches];
  if (layout.get().form !== form || layout.get().isTight !== isTight) layout.set({ form, isTight });
};
phone.addEventListener("change", look);
tight.addEventListener("change", look);

/** Narrow windows show icons in any case. */
export const toggleRail = (): void => {
  if (localStorage.getItem(KEY) === "icons") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, "icons");
  look();
};
