// One entry of the rail, of the bar of a phone, or of its sheet: icon, word, and what waits there.
import { Link } from "@tanstack/react-router";
import { badges } from "../../api/live.ts";
import { numbers } from "../../ui/count.ts";
import { Icon } from "../../ui/icon.tsx";
import type { Entry } from "../places.ts";
import { layout } from "./layout.ts";
import css from "./shell.module.css";

const MOST_SHOWN = 99;

/** Only what a person has to do has a number: alerts that nobody has taken on. */
const OpenAlerts = () => {
  const total = badges.use().alerts ?? 0;
  if (total === 0) return null;
  return (
    <span className={css["badge"]}>
      {total > MOST_SHOWN ? `${MOST_SHOWN}+` : numbers.format(total)}
      <span className="out-of-sight"> open</span>
    </span>
  );
};

interface PlaceLinkProps {
  readonly entry: Entry;
  readonly here: boolean;
  readonly className: string | undefined;
  readonly onGo?: () => void;
}
export const PlaceLink = ({ entry: { to, root, word, icon }, here, className, onGo }: PlaceLinkProps) => {
  const { form } = layout.use();
  return (
    <Link
      to={to}
      className={className}
      activeOptions={{ exact: true, includeSearch: false }}
      aria-current={here ? "page" : undefined}
      title={form === "icons" ? word : undefined}
      onClick={onGo}
    >
      <Icon name={icon} />
      <span className={form === "icons" ? "out-of-sight" : "cut"}>{word}</span>
      {root === "/alerts" ? <OpenAlerts /> : null}
    </Link>
  );
};
