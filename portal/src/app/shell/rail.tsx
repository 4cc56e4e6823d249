// The rail of a desktop: the tenant, the way to everything, the places in their groups, and the person.
import { Icon } from "../../ui/icon.tsx";
import { NewVersion } from "../new-version.tsx";
import { type Entry, GROUP_WORDS, GROUPS } from "../places.ts";
import { AddMenu } from "./add-menu.tsx";
import { layout } from "./layout.ts";
import { LiveState } from "./live-state.tsx";
import { PersonMenu } from "./person.tsx";
import { PlaceLink } from "./place-link.tsx";
import css from "./shell.module.css";
import { TenantMenu } from "./tenant-menu.tsx";

export interface FrameProps {
  readonly entries: readonly Entry[];
  readonly here: Entry | undefined;
  readonly pathname: string;
  readonly isLive: boolean;
  readonly onFind: () => void;
  readonly onKeys: () => void;
}

export const Rail = ({ entries, here, pathname, isLive, onFind, onKeys }: FrameProps) => {
  const { form } = layout.use();
  const linksOf = (group: Entry["group"]) =>
    entries
      .filter((entry) => entry.group === group)
      .map((entry) => <PlaceLink key={entry.root} entry={entry} here={entry === here} className={css["place"]} />);
  const groups = GROUPS.map((group) => ({ group, links: linksOf(group) })).filter(({ links }) => links.length > 0);
  return (
    <nav className={css["rail"]} aria-label="Places">
      <TenantMenu pathname={pathname} />
      <div className={css["find"]}>
        <button type="button" aria-label={form === "icons" ? "Go to…" : undefined} title="Go to…" onClick={onFind}>
          <Icon name="search" />
          {form === "icons" ? null : (
            <>
              <span>Go to…</span>
              <kbd>Ctrl K</kbd>
            </>
          )}
        </button>
        <AddMenu />
      </div>
      {groups.map(({ group, links }) => (
        <div key={group} className={css["group"]}>
          {GROUP_WORDS[group] === undefined ? null : <div className={css["heading"]}>{GROUP_WORDS[group]}</div>}
          {links}
        </div>
      ))}
      <div className={css["foot"]}>
        {linksOf("foot")}
        <NewVersion />
        <div className={css["self"]}>
          <PersonMenu onKeys={onKeys} />
          {isLive ? <LiveState /> : null}
        </div>
      </div>
    </nav>
  );
};
