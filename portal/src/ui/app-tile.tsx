// The tile of an application: its icon, in its hue.
import type { AppTemplate } from "@mooring/client";
import css from "./app-tile.module.css";

/** The address of the file with the icons of applications, which the build knows. */
declare const __APP_ICONS__: string;

interface AppTileProps extends Pick<AppTemplate, "icon" | "hue"> {
  /** `small`: in a row. `large`: on a card. */
  readonly size?: "small" | "large";
}
export const AppTile = ({ icon, hue, size }: AppTileProps) => (
  <span className={css["tile"]} data-hue={hue} data-size={size} aria-hidden="true">
    <svg aria-hidden="true">
      <use href={`${__APP_ICONS__}#${icon}`} />
    </svg>
  </span>
);
