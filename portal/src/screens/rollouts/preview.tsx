// What a rollout would do now: phases in devices, what is left out, and the next windows by the zone's clock and by the reader's.
import type { RolloutPreview } from "@mooring/client";
import { numbers } from "../../ui/count.ts";
import { Notice } from "../../ui/notice.tsx";
import { Facts, Panel } from "../../ui/parts.tsx";
import { exactTime } from "../../ui/time.tsx";
import { text } from "./text.ts";

const MAX_WINDOWS = 5;
/** The date, the time without seconds, and the offset. */
const clockText = (local: string): string => `${local.slice(0, 10)} ${local.slice(11, 16)} ${local.slice(19)}`;
const sizeOf = ({ size, percent, count }: RolloutPreview["phases"][number]): string =>
  size === null ? (percent === null ? numbers.format(count ?? 0) : `${percent} %`) : numbers.format(size);

export const Preview = ({ of: { target, total, updates, offline, skipped, phases, windows, conflicts, warnings } }: { readonly of: RolloutPreview }) => (
  <Panel title={text.preview}>
    {total === null || updates === null ? <p className="muted">{text.noFleet}</p> : <p role="status">{text.previewOf(updates, total)}</p>}
    {offline === null || offline === 0 ? null : <p>{text.offlineNow(offline)}</p>}
    {warnings.map((each) => (
      <Notice key={each} tone="warn" title={text.warnings[each]} />
    ))}
    {conflicts.map(({ rolloutId, devices }) => (
      <Notice key={rolloutId} tone="warn" title={text.conflict(devices)} />
    ))}
    <Facts
      of={{
        [text.version]: target.version,
        ...Object.fromEntries(phases.map((each) => [text.phase(each.phase), `${sizeOf(each)}, ${text.atLeast(each.minSuccessPercent)}`])),
        ...Object.fromEntries(skipped.map(({ code, count }) => [`${text.skippedBy}: ${code}`, numbers.format(count)])),
      }}
    />
    {windows.length === 0 ? null : (
      <>
        <h3>{text.nextWindows}</h3>
        <ul>
          {windows.slice(0, MAX_WINDOWS).map(({ opensAt, local, timezone }) => (
            <li key={opensAt}>
              {clockText(local)} {timezone}, <span className="muted">{text.yours(exactTime(opensAt))}</span>
            </li>
          ))}
        </ul>
      </>
    )}
  </Panel>
);
