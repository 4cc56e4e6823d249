// Everything that does not go on by itself, with the reason and what a person can do about it.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { Copyable, Empty, Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Since } from "../../ui/time.tsx";
import css from "./nodes.module.css";
import { text } from "./text.ts";

export const StuckList = () => {
  const read = useQuery(api.admin.listStuck.queryOptions({}));
  return (
    <Loaded read={read} rows={6}>
      {({ items, truncated }) =>
        items.length === 0 ? (
          <Empty>{text.stuck.none}</Empty>
        ) : (
          <>
            <ul className={`${css["rows"]} ${css["stuck"]}`}>
              {items.map(({ kind, id, tenantId, since, reason, whatToDo, blockedBy }) => (
                <li key={`${kind} ${id} ${since}`} className={css["item"]}>
                  <div className={css["facts"]}>
                    <Status status="failed" word={text.stuck.kinds[kind]} />
                    <Copyable text={id} />
                    {tenantId === null ? null : <span className="muted mono">{text.stuck.ofTenant(tenantId)}</span>}
                    <span className="muted">
                      <Since at={since} />
                    </span>
                  </div>
                  <p>{reason}</p>
                  {blockedBy === undefined ? null : <p className="mono">{text.stuck.waitsFor(blockedBy)}</p>}
                  <p>
                    <strong>{text.stuck.whatToDo}:</strong> {whatToDo}
                  </p>
                </li>
              ))}
            </ul>
            {truncated ? <p className="muted">{text.stuck.truncated}</p> : null}
          </>
        )
      }
    </Loaded>
  );
};
