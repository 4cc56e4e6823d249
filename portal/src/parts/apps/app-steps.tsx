// The steps of an app or a deployment, and the command that it waits for.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { inferOutput } from "@trpc/tanstack-react-query";
import { inWords } from "../../../../protocol/kit/words.ts";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Empty } from "../../ui/parts.tsx";
import { type Step, Timeline } from "../../ui/timeline.tsx";
import { Blocked } from "../blocked.tsx";
import { actorText } from "../text.ts";
import { shownStatus } from "./app-status.tsx";
import { text } from "./app-text.ts";

export type AppTimeline = inferOutput<typeof api.apps.timeline>;
type OneStep = AppTimeline["items"][number];
type WaitsFor = NonNullable<AppTimeline["waitsFor"]>;

const Waits = ({ commandId, deviceId }: WaitsFor) => {
  const timeline = useQuery(api.commands.timeline.queryOptions({ commandId, deviceId })).data;
  const link = (id: string, words: React.ReactNode) => (
    <Link to="/devices/$deviceId" params={{ deviceId }} search={{ command: id }}>
      {words}
    </Link>
  );
  return timeline === undefined ? null : (
    <>
      <Blocked timeline={timeline} link={link} />
      <p>{link(commandId, text.command)}</p>
    </>
  );
};

const stepOf = ({ to, at, by, actor, revision, reason }: OneStep): Step => ({
  ...shownStatus(to),
  at,
  facts: [
    by.startsWith("dev_") ? text.byDevice : actorText(actor),
    revision === 0 ? null : text.revision(revision),
    reason === null ? null : inWords(reason),
  ].filter((fact) => fact !== null),
});

interface OfTimeline {
  readonly timeline: AppTimeline;
}

/** The command whose end causes the next step, and what that waits for. */
export const AppWaits = ({ timeline: { waitsFor } }: OfTimeline) => {
  const may = useMay();
  return waitsFor === null || !may("command:read") ? null : <Waits {...waitsFor} />;
};

export const AppSteps = ({ timeline: { items } }: OfTimeline) =>
  items.length === 0 ? <Empty>{text.noSteps}</Empty> : <Timeline label={text.steps} steps={items.map(stepOf)} />;
