// The apps of a small fleet, each with the way to its page.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { AppStatus } from "../../parts/apps/app-status.tsx";
import { AppTile } from "../../ui/app-tile.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import css from "./apps-panel.module.css";
import { text } from "./text.ts";

const ROWS = 12;

export const AppsPanel = () => {
  const read = useQuery(api.apps.list.queryOptions({ sort: "name", pageSize: ROWS }));
  if (read.data?.items.length === 0) return null;
  return (
    <Panel title={text.apps.title} beside={<Link to="/apps">{text.apps.all}</Link>}>
      <Loaded read={read} rows={4}>
        {({ items }) => (
          <ul className={css["apps"]}>
            {items.map(({ appId, name, icon, hue, status, drift, addresses }) => {
              const page = addresses.find(({ url }) => /^https?:/.test(url))?.url;
              return (
                <li key={appId}>
                  <AppTile icon={icon} hue={hue} />
                  <Link to="/apps/$appId" params={{ appId }} className="cut">
                    {name}
                  </Link>
                  <span>
                    <AppStatus status={status} drift={drift} />
                  </span>
                  {page === undefined || status !== "running" ? null : (
                    <a href={page} target="_blank" rel="noreferrer" data-kind="button" data-size="small" aria-label={text.apps.open(name)}>
                      {text.apps.openWord}
                    </a>
                  )}
                </li>
              );
            })}
          </ul>
        )}
      </Loaded>
    </Panel>
  );
};
