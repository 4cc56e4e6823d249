// Light, dark or as the system says; remembered in this browser.
import { createStore } from "../api/store.ts";

export const SCHEMES = ["auto", "light", "dark"] as const;
type Scheme = (typeof SCHEMES)[number];
const KEY = "mooring.scheme";
const stored = localStorage.getItem(KEY);

export const scheme = createStore<{ readonly name: Scheme }>({ name: SCHEMES.find((each) => each === stored) ?? "auto" });

export const showScheme = (): void => {
  document.documentElement.dataset["scheme"] = scheme.get().name;
};
export const chooseScheme = (name: Scheme): void => {
  scheme.set({ name });
  localStorage.setItem(KEY, name);
  showScheme();
};
