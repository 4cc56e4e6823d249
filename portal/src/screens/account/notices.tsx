// What the person wants to be told of, and where.
import type { Notification } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Failure } from "../../ui/failure.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import css from "./account.module.css";
import { text } from "./text.ts";

const WAYS = ["email", "inApp"] as const;
const WORDS = { email: text.mail, inApp: text.inApp } as const;

export const Notices = () => {
  const query = api.account.notifications.queryOptions({});
  const notices = useQuery(query);
  const update = useMutation(api.account.updateNotifications.mutationOptions({ onSuccess: (stored) => void queryClient.setQueryData(query.queryKey, stored) }));
  // What is being stored shows at once.
  const shown = update.isPending ? update.variables.items : undefined;
  const change = (items: readonly Notification[], changed: Notification): void =>
    update.mutate({ items: items.map((each) => (each.event === changed.event ? changed : each)) });
  return (
    <Panel title={text.notices}>
      {update.error === null ? null : <Failure error={update.error} />}
      <Loaded read={notices} rows={6}>
        {({ items: stored }) => {
          const items = shown ?? stored;
          return (
            <table className={css["notices"]}>
              <thead>
                <tr>
                  <th scope="col">Event</th>
                  {WAYS.map((way) => (
                    <th key={way} scope="col">
                      {WORDS[way]}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {items.map((notice) => (
                  <tr key={notice.event}>
                    <th scope="row">{text.noticeWords[notice.event]}</th>
                    {WAYS.map((way) => (
                      <td key={way}>
                        <input
                          type="checkbox"
                          aria-label={`${text.noticeWords[notice.event]}: ${WORDS[way]}`}
                          checked={notice[way]}
                          disabled={update.isPending}
                          onChange={({ target }) => change(items, { ...notice, [way]: target.checked })}
                        />
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          );
        }}
      </Loaded>
      <p className="muted">{text.noticesHint}</p>
    </Panel>
  );
};
