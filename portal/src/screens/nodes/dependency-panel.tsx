// What the node that answers depends on, and how it is.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import css from "./nodes.module.css";
import { type Dependency, text } from "./text.ts";

export const DependencyPanel = () => {
  const read = useQuery(api.health.deep.queryOptions({}));
  return (
    <Panel title={text.dependencies.title}>
      <Loaded read={read} rows={4}>
        {({ dependencies }) => (
          <ul className={css["rows"]}>
            {/* as: entries lose their keys */}
            {(Object.entries(dependencies) as [Dependency, (typeof dependencies)["database"]][]).map(([name, { status, message, latencyMs, configured }]) => (
              <li key={name} className={css["row"]}>
                <span>{text.dependencies.names[name]}</span>
                {configured === false ? <Status status="idle" word={text.dependencies.unset} /> : <Status status={status} />}
                <span className={`muted ${css["wide"]}`}>{configured === false ? "" : message}</span>
                <span className="muted">{latencyMs === undefined ? "" : text.dependencies.latency(latencyMs)}</span>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Panel>
  );
};
