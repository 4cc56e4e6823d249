// All places of a phone in two columns, with the search above and the person below.
import { Link } from "@tanstack/react-router";
import { SignOut } from "../../parts/sign-out.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";
import { type Entry, GROUP_WORDS, type Group } from "../places.ts";
import { chooseScheme, SCHEMES, scheme } from "../scheme.ts";
import own from "./more-sheet.module.css";
import { Initials, usePersonName } from "./person.tsx";
import { PlaceLink } from "./place-link.tsx";
import type { FrameProps } from "./rail.tsx";
import css from "./shell.module.css";

/** The first place stands with those that it sums up, the settings with what one watches. */
const SECTIONS: readonly (readonly [name: string, groups: readonly Group[]])[] = [
  [GROUP_WORDS.run ?? "", ["start", "run"]],
  [GROUP_WORDS.change ?? "", ["change"]],
  [GROUP_WORDS.data ?? "", ["data"]],
  [GROUP_WORDS.watch ?? "", ["watch", "foot"]],
];

interface MoreSheetProps {
  readonly frame: FrameProps;
  readonly onClose: () => void;
}
export const MoreSheet = ({ frame: { entries, here, onFind }, onClose }: MoreSheetProps) => {
  const person = usePersonName();
  const { name: current } = scheme.use();
  const find = (): void => {
    onClose();
    onFind();
  };
  const linkOf = (entry: Entry) => <PlaceLink key={entry.root} entry={entry} here={entry === here} className={css["place"]} onGo={onClose} />;
  return (
    <Dialog title="More" open sheet onClose={onClose}>
      <div className={css["find"]}>
        <button type="button" onClick={find}>
          <Icon name="search" />
          <span>Go to…</span>
        </button>
      </div>
      {SECTIONS.map(([name, groups]) => ({ name, shown: entries.filter(({ group }) => groups.includes(group)) }))
        .filter(({ shown }) => shown.length > 0)
        .map(({ name, shown }) => (
          <nav key={name} aria-label={name} className={own["two"]}>
            <div className={css["heading"]}>{name}</div>
            {shown.map(linkOf)}
          </nav>
        ))}
      <section className={own["card"]} aria-label="You">
        <Link to="/account" className={css["place"]} onClick={onClose}>
          <Initials of={person} />
          <span className="cut">{person}</span>
        </Link>
        <fieldset className={own["colors"]}>
          <legend className="muted">Colors</legend>
          {SCHEMES.map((each) => (
            <label key={each}>
              <input type="radio" name="colors" checked={each === current} onChange={() => chooseScheme(each)} /> {each}
            </label>
          ))}
        </fieldset>
        <SignOut />
      </section>
    </Dialog>
  );
};
