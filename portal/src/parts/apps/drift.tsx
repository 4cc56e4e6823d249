// What differs between what a device should run and what its agent reports.
import type { App } from "@mooring/client";
import { Notice } from "../../ui/notice.tsx";
import { Facts } from "../../ui/parts.tsx";
import { Ago, Since } from "../../ui/time.tsx";
import { text } from "./app-text.ts";

const differenceOf = (is: string | number | undefined, desired: string | number): string | null =>
  is === undefined || is === desired ? null : text.insteadOf(is, desired);

export const Drift = ({ app: { drift, desiredState, revision, reported, reportedAt, driftSince } }: { readonly app: App }) =>
  drift ? (
    <Notice tone="warn" label={text.drift} title={text.drift}>
      <p>{reported === null ? text.nothingReported : text.driftWhat}</p>
      <Facts
        of={{
          [text.state]: differenceOf(reported?.state, desiredState),
          [text.revisionField]: differenceOf(reported?.revision, revision),
          [text.since]: driftSince === null ? null : <Since at={driftSince} />,
          [text.reportedAt]: reportedAt === null ? null : <Ago at={reportedAt} />,
        }}
      />
    </Notice>
  ) : null;
