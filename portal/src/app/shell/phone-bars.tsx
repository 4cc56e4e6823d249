// The bars of a phone: the tenant and the search on top, four places and all others at the bottom.
import { lazy, Suspense, useState } from "react";
import { Icon } from "../../ui/icon.tsx";
import { NewVersion } from "../new-version.tsx";
import { AddMenu } from "./add-menu.tsx";
import { LiveState } from "./live-state.tsx";
import own from "./phone-bars.module.css";
import { PlaceLink } from "./place-link.tsx";
import type { FrameProps } from "./rail.tsx";
import css from "./shell.module.css";
import { TenantMenu } from "./tenant-menu.tsx";

const MoreSheet = lazy(() => import("./more-sheet.tsx").then((part) => ({ default: part.MoreSheet })));
/** What people open most stands under the thumb. */
const BELOW: readonly string[] = ["/", "/devices", "/apps", "/alerts"];

export const TopBar = ({ pathname, isLive, onFind }: FrameProps) => (
  <header className={own["top"]}>
    <TenantMenu pathname={pathname} />
    <span className={css["grow"]} />
    {isLive ? <LiveState /> : null}
    <button type="button" className={css["square"]} data-bare aria-label="Go to…" onClick={onFind}>
      <Icon name="search" />
    </button>
    <AddMenu />
    <NewVersion />
  </header>
);

export const BottomBar = (frame: FrameProps) => {
  const { entries, here } = frame;
  const [isOpen, setIsOpen] = useState(false);
  const below = entries.filter(({ root }) => BELOW.includes(root));
  return (
    <>
      <nav className={own["bottom"]} aria-label="Places">
        {below.map((entry) => (
          <PlaceLink key={entry.root} entry={entry} here={entry === here} className={own["under"]} />
        ))}
        <button
          type="button"
          className={own["under"]}
          aria-haspopup="dialog"
          aria-current={here !== undefined && !below.includes(here) ? "true" : undefined}
          onClick={() => setIsOpen(true)}
        >
          <Icon name="more" />
          More
        </button>
      </nav>
      <Suspense fallback={null}>{isOpen ? <MoreSheet frame={frame} onClose={() => setIsOpen(false)} /> : null}</Suspense>
    </>
  );
};
