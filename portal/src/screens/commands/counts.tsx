// How many commands are open, blocked, late, and how those of the last day ended. Each count leads to its commands.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { Loaded } from "../../ui/parts.tsx";
import { Shape, Status } from "../../ui/status.tsx";
import { exactTime } from "../../ui/time.tsx";
import { text } from "./text.ts";

const sum = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((total, count) => total + count, 0);

export const Counts = () => {
  const read = useQuery(api.commands.summary.queryOptions({}));
  return (
    <nav className="row" aria-label={text.counts}>
      <Loaded read={read} rows={1}>
        {({ open, blocked, pastDeadline, endedLastDay, endedSince }) => (
          <>
            <Link to="/commands">{text.open(sum(open))}</Link>
            <Link to="/commands" search={{ show: "blocked" }}>
              {text.blocked(blocked)}
            </Link>
            <span>
              <Shape tone={pastDeadline === 0 ? "good" : "bad"} /> {text.pastDeadline(pastDeadline)}
            </span>
            <span className="muted">{endedSince === null ? text.lastDay : text.since(exactTime(endedSince))}</span>
            {Object.entries(endedLastDay).map(([status, count]) => (
              <Link key={status} to="/commands" search={{ show: "ended", status }}>
                <Status status={status} word={text.ended(count, status)} />
              </Link>
            ))}
            <Link to="/commands" search={{ show: "all" }}>
              {text.all}
            </Link>
          </>
        )}
      </Loaded>
    </nav>
  );
};
