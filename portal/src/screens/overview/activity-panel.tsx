// What happened last, folded by its cause.
import type { OverviewActivity } from "@mooring/client";
import { Link } from "@tanstack/react-router";
import { useMay } from "../../api/session.ts";
import { numbers } from "../../ui/count.ts";
import { Panel } from "../../ui/parts.tsx";
import { Shape, type Tone } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import css from "./overview.module.css";
import { text } from "./text.ts";

const TONES: readonly (readonly [RegExp, Tone])[] = [
  [/\.(offline|failed|down|expired|timed_out|threshold_exceeded|undeliverable)$|^security_alert\.opened$|^alert\.opened$/, "bad"],
  [/\.(paused|degraded|drifted|awaiting_approval|certificate_expiring|expiring)$/, "warn"],
  [/\.(online|recovered|completed|active|running|resolved|verified|renewed|activated)$/, "good"],
  [/\.(started|installing|updating|restarting|removing|rolling_back)$/, "busy"],
];
const toneOf = (type: string): Tone => TONES.find(([pattern]) => pattern.test(type))?.[1] ?? "idle";

const What = ({ line: { type, count, subject, tag } }: { readonly line: OverviewActivity }) => {
  const words = text.activity.words(type, count);
  if (count > 1)
    return (
      <>
        <strong>{numbers.format(count)}</strong> {words}
        {tag === null ? null : (
          <>
            ,{" "}
            <Link to="/devices" search={{ tag }}>
              {tag}
            </Link>
          </>
        )}
      </>
    );
  if (subject?.name == null) return text.activity.alone(type);
  if (subject.kind === "device" && type.startsWith("device."))
    return (
      <>
        <Link to="/devices/$deviceId" params={{ deviceId: subject.id }} preload={false}>
          {subject.name}
        </Link>{" "}
        {words}
      </>
    );
  return (
    <>
      {text.activity.alone(type)}:{" "}
      {subject.kind === "device" ? (
        <Link to="/devices/$deviceId" params={{ deviceId: subject.id }} preload={false}>
          {subject.name}
        </Link>
      ) : (
        <strong>{subject.name}</strong>
      )}
    </>
  );
};

export const ActivityPanel = ({ activity }: { readonly activity: readonly OverviewActivity[] }) => {
  if (!useMay()("event:read")) return null;
  return (
    <Panel title={text.activity.title} beside={<Link to="/events">{text.activity.all}</Link>}>
      {activity.length === 0 ? (
        <p className="muted">{text.activity.none}</p>
      ) : (
        <ol className={css["feed"]}>
          {activity.map((line) => (
            <li key={`${line.type} ${line.at}`}>
              <Shape tone={toneOf(line.type)} />
              <span>
                <What line={line} />
              </span>
              <small className="muted">
                <Ago at={line.at} />
              </small>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
};
