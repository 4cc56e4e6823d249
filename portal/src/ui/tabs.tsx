// The parts of a screen, one at a time. The URL's `tab` says which; the first needs no word there.
import { Link } from "@tanstack/react-router";
import { type ReactNode, useLayoutEffect, useRef } from "react";
import css from "./tabs.module.css";

export const tabClass = css["tab"] ?? "";

interface StripProps {
  readonly label: string;
  /** Which of its links is chosen: that one is scrolled into sight. */
  readonly current: string | undefined;
  readonly children: ReactNode;
}
/** Links in a line, which scrolls sideways where there is no room for all. */
export const Strip = ({ label, current, children }: StripProps) => {
  const strip = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: which link is chosen shows in the page
  useLayoutEffect(() => {
    const chosen = strip.current?.querySelector<HTMLElement>("[aria-current]");
    if (strip.current === null || chosen == null) return;
    strip.current.scrollLeft = chosen.offsetLeft - (strip.current.clientWidth - chosen.offsetWidth) / 2;
  }, [current]);
  return (
    <nav ref={strip} className={css["tabs"]} aria-label={label} data-strip>
      {children}
    </nav>
  );
};

export interface TabsProps<T extends string> {
  readonly label: string;
  readonly tabs: readonly T[];
  readonly words: Readonly<Record<T, ReactNode>>;
  readonly current: T;
}

export const Tabs = <T extends string>({ label, tabs, words, current }: TabsProps<T>) => (
  <Strip label={label} current={current}>
    {tabs.map((tab, index) => (
      <Link
        key={tab}
        to="."
        // as: the screen that has these tabs reads them
        search={(index === 0 ? {} : { tab }) as never}
        activeOptions={{ exact: true, includeSearch: true }}
        className={tabClass}
        aria-current={tab === current ? "page" : undefined}
      >
        {words[tab]}
      </Link>
    ))}
  </Strip>
);
