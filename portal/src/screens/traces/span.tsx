// One span: what did it, how it ended, and its attributes, events and links.
import type { TraceSpan } from "@mooring/client";
import { Link } from "@tanstack/react-router";
import { useMay } from "../../api/session.ts";
import { Copyable, Facts, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { text, took } from "./text.ts";
import css from "./traces.module.css";

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

const Attributes = ({ label, of }: { readonly label: string; readonly of: Readonly<Record<string, unknown>> }) =>
  Object.keys(of).length === 0 ? null : (
    <table className={css["attributes"]}>
      <caption>{label}</caption>
      <tbody>
        {Object.entries(of).map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{shown(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );

const DeviceLink = ({ deviceId }: { readonly deviceId: string }) =>
  useMay()("device:read") ? (
    <Link to="/devices/$deviceId" params={{ deviceId }}>
      {deviceId}
    </Link>
  ) : (
    <Copyable text={deviceId} />
  );
const CommandLink = ({ commandId }: { readonly commandId: string }) =>
  useMay()("command:read") ? (
    <Link to="/commands" search={{ command: commandId }}>
      {commandId}
    </Link>
  ) : (
    <Copyable text={commandId} />
  );

const Beside = ({ of: { events, links }, start }: { readonly of: TraceSpan; readonly start: number }) => (
  <>
    {events.map(({ name, time, attributes }, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the events of a span never change
      <div key={at}>
        <Attributes label={`${name}, +${took(Date.parse(time) - start)}`} of={attributes} />
        {Object.keys(attributes).length === 0 ? `${name}, +${took(Date.parse(time) - start)}` : null}
      </div>
    ))}
    {links.length === 0 ? null : (
      <section aria-label={text.links}>
        <strong>{text.links}</strong>
        <ul className={css["list"]}>
          {links.map(({ traceId, spanId }) => (
            <li key={`${traceId}${spanId}`}>
              <Link to="/traces/$traceId" params={{ traceId }} search={{ span: spanId }} className="mono">
                {traceId}
              </Link>
            </li>
          ))}
        </ul>
      </section>
    )}
  </>
);

export interface SpanProps {
  readonly of: TraceSpan;
  /** When the trace began. */
  readonly start: number;
  readonly onClose: () => void;
}

export const Span = ({ of, start, onClose }: SpanProps) => {
  const { spanId, service, operation, kind, startTime, durationMs, status, statusMessage, source, deviceId, commandId, attributes, resource } = of;
  return (
    <Panel
      title={operation}
      beside={
        <button type="button" data-kind="plain" onClick={onClose}>
          {text.close}
        </button>
      }
    >
      <Facts
        of={{
          [text.service]: service,
          [text.status]: <Status status={status} />,
          Message: statusMessage,
          Began: `+${took(Math.max(0, Date.parse(startTime) - start))}`,
          Took: took(durationMs),
          Kind: kind === "unspecified" ? null : kind,
          From: text.sources[source],
          [text.device]: deviceId === null ? null : <DeviceLink deviceId={deviceId} />,
          Command: commandId === null ? null : <CommandLink commandId={commandId} />,
          Id: <Copyable text={spanId} />,
        }}
      />
      {Object.keys(attributes).length === 0 ? <p className="muted">{text.noAttributes}</p> : <Attributes label={text.attributes} of={attributes} />}
      <Attributes label={text.resource} of={resource} />
      <Beside of={of} start={start} />
    </Panel>
  );
};
