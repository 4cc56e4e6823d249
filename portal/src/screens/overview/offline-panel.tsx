// The devices that have been offline for longest, with the reason that the gateway knows.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { inWords } from "../../../../protocol/kit/words.ts";
import { api } from "../../api/client.ts";
import { deviceLabel } from "../../ui/device-label.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import css from "./overview.module.css";
import { text } from "./text.ts";

const ROWS = 8;

export const OfflinePanel = () => {
  const read = useQuery(api.devices.list.queryOptions({ status: "offline", sort: "lastSeen", pageSize: ROWS }));
  return (
    <Panel
      title={text.offline.title}
      beside={
        <Link to="/devices" search={{ status: "offline", sort: "lastSeen" }}>
          {text.offline.all}
        </Link>
      }
    >
      <Loaded read={read} rows={ROWS}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="muted">{text.offline.none}</p>
          ) : (
            <ul className={css["rows"]}>
              {items.map(({ deviceId, name, hostname, status, offlineReason, lastSeen }) => (
                <li key={deviceId} className={css["row"]}>
                  <Status status={status} />
                  <Link to="/devices/$deviceId" params={{ deviceId }} className="cut">
                    {deviceLabel({ deviceId, name, hostname })}
                  </Link>
                  <span className={`muted cut ${css["wide"]}`}>{offlineReason === undefined ? text.offline.noReason : inWords(offlineReason)}</span>
                  <Ago at={lastSeen} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
};
