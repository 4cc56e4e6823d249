// The parts of a screen, one at a time. The URL's `tab` says which; the first needs no word there.
import { Link } from "@tanstack/react-router";
import css from "./tabs.module.css";

export interface TabsProps<T extends string> {
  readonly label: string;
  readonly tabs: readonly T[];
  readonly words: Readonly<Record<T, string>>;
  readonly current: T;
}

export const Tabs = <T extends string>({ label, tabs, words, current }: TabsProps<T>) => (
  <nav className={css["tabs"]} aria-label={label}>
    {tabs.map((tab, index) => (
      <Link
        key={tab}
        to="."
        // as: the screen that has these tabs reads them
        search={(index === 0 ? {} : { tab }) as never}
        activeOptions={{ exact: true, includeSearch: true }}
        className={css["tab"]}
        aria-current={tab === current ? "page" : undefined}
      >
        {words[tab]}
      </Link>
    ))}
  </nav>
);
