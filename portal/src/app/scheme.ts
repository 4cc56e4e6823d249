// Light, dark or as the system says; remembered in this browser.
import { createStore } from "../api/store.ts";

const SCHEMES = ["auto", "light", "dark"] as const;
type Scheme = (typeof SCHEMES)[number];
const KEY = "mooring.scheme";
const stored = localStorage.getItem(KEY);

export const scheme = createStore<{ readonly name: Scheme }>({ name: SCHEMES.find((each) => each === stored) ?? "auto" });

export const showScheme = (): void => {
  document.documentElement.dataset["scheme"] = scheme.get().name;
};
export const nextScheme = (): void => {
  const { name } = scheme.get();
  scheme.set({ name: SCHEMES[(SCHEMES.indexOf(name) + 1) % SCHEMES.length] ?? "auto" });
  localStorage.setItem(KEY, scheme.get().name);
  showScheme();
};
