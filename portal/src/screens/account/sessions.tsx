// Where the person is signed in. Each session can be ended from here, this one by signing out.
import type { UserSession } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Failure } from "../../ui/failure.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import css from "./account.module.css";
import { text } from "./text.ts";

/** Such as `Firefox on Linux`, as far as the program says. */
const programOf = ({ userAgent }: UserSession): string => {
  if (userAgent === null) return text.unknownProgram;
  const [browser] = /(?:Edg|Firefox|Chrome|Safari|curl)(?=\/)/.exec(userAgent) ?? [];
  const [system] = /Windows|Android|iPhone|iPad|Mac OS|Linux/.exec(userAgent) ?? [];
  return browser === undefined ? userAgent.slice(0, 60) : [browser.replace("Edg", "Edge"), ...(system === undefined ? [] : [system])].join(" on ");
};

export const Sessions = () => {
  const sessions = useQuery(api.sessions.list.queryOptions({}));
  const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.sessions.pathFilter());
  const end = useMutation(api.sessions.end.mutationOptions({ onSuccess: readAgain }));
  const endOthers = useMutation(api.sessions.endOthers.mutationOptions({ onSuccess: readAgain }));
  const others = (sessions.data?.items ?? []).filter(({ current }) => !current);
  return (
    <Panel
      title={text.sessions}
      beside={
        others.length === 0 ? undefined : (
          <button type="button" disabled={endOthers.isPending} onClick={() => endOthers.mutate({})}>
            {text.endOthers}
          </button>
        )
      }
    >
      {[end.error, endOthers.error].map((error, index) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: two places that never move
        error === null ? null : <Failure key={index} error={error} />,
      )}
      <Loaded read={sessions}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="muted">{text.noSessions}</p>
          ) : (
            <ul className={css["list"]}>
              {items.map((session) => (
                <li key={session.sessionId}>
                  <span className={css["what"]}>
                    <strong>{programOf(session)}</strong>{" "}
                    <span className="muted">
                      {session.ip} · {text.methods[session.method]} · used <Ago at={session.lastSeenAt} />
                    </span>
                  </span>
                  {session.current ? (
                    <span className="muted">{text.thisSession}</span>
                  ) : (
                    <button
                      type="button"
                      disabled={end.isPending}
                      aria-label={text.endOne(`${programOf(session)}, ${session.ip}`)}
                      onClick={() => end.mutate({ sessionId: session.sessionId })}
                    >
                      {text.end}
                    </button>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
};
