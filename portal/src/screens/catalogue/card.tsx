// An application of the catalogue on its card.
import type { AppTemplate } from "@mooring/client";
import { Link } from "@tanstack/react-router";
import { useMay } from "../../api/session.ts";
import { AppTile } from "../../ui/app-tile.tsx";
import { Icon } from "../../ui/icon.tsx";
import css from "./catalogue.module.css";
import { diskText, fitText, lackOfAll, memoryText } from "./fit-words.ts";
import { text } from "./text.ts";

interface CardProps {
  readonly of: AppTemplate;
  readonly onInstall: () => void;
}

/** Where it is installed, or the button that installs it where it can run. */
const Step = ({ of, onInstall }: CardProps) => {
  const may = useMay();
  const { name, available, requiredPlan, minPlan, fits, installed, installedCount } = of;
  const [first] = installed;
  if (first !== undefined)
    return (
      <span className={css["tag"]}>
        <Icon name="check" />
        <span className="cut">{text.installedAt(installed)}</span>
        <span>{text.installedMore(installed, installedCount)}</span>
      </span>
    );
  if (!available) return <span className={css["tag"]}>{text.needs(requiredPlan ?? minPlan)}</span>;
  if (!may("deployment:create") || fits?.devices === 0) return null;
  return (
    <button type="button" data-size="small" aria-label={text.installOn(name)} onClick={onInstall}>
      {text.install}
    </button>
  );
};

export const Card = ({ of, onInstall }: CardProps) => {
  const { id, name, tagline, icon, hue } = of;
  return (
    <article className={css["card"]}>
      <div className={css["what"]}>
        <AppTile icon={icon} hue={hue} size="large" />
        <div>
          <h2 className="cut">
            <Link to="/catalogue/$templateId" params={{ templateId: id }} preload={false}>
              {name}
            </Link>
          </h2>
          <p className={css["line"]}>{tagline}</p>
        </div>
      </div>
      <div className={css["foot"]}>
        <p>
          {text.needed(memoryText(of), diskText(of))}
          <br />
          {[fitText(of), lackOfAll(of)].filter((each) => each !== null).join(": ")}
        </p>
        <Step of={of} onInstall={onInstall} />
      </div>
    </article>
  );
};
