// The parts that every screen is made of: page, panel, facts, a copyable id, and the states of a read: loading, failed, empty.
import { type ReactNode, useEffect, useState } from "react";
import { Failure } from "./failure.tsx";
import css from "./parts.module.css";

export interface PageProps {
  readonly title: string;
  /** Beside the title: a state, an id. */
  readonly beside?: ReactNode;
  readonly actions?: ReactNode;
  /** As high as the window: a table in it scrolls by itself. */
  readonly fill?: boolean;
  readonly children: ReactNode;
}

export const Page = ({ title, beside, actions, fill = false, children }: PageProps) => {
  useEffect(() => {
    document.title = `${title} · Mooring`;
  }, [title]);
  return (
    <div className={css["page"]} data-fill={fill || undefined}>
      <header className={css["pageHead"]}>
        <div className={css["title"]}>
          <h1>{title}</h1>
          {beside}
        </div>
        {actions === undefined ? null : <div className="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
};

export const Panel = ({ title, beside, children }: { readonly title: string; readonly beside?: ReactNode; readonly children: ReactNode }) => (
  <section className={css["panel"]} aria-label={title}>
    <div className={css["panelHead"]}>
      <h2>{title}</h2>
      {beside}
    </div>
    {children}
  </section>
);

/** Names with their values; a value that is not known is left out. */
export const Facts = ({ of }: { readonly of: Readonly<Record<string, ReactNode>> }) => (
  <dl className={css["facts"]}>
    {Object.entries(of)
      .filter(([, value]) => value !== undefined && value !== null && value !== "")
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
);

const COPIED_MS = 1_500;
/** A value that people copy: an id, a link, a secret. */
export const Copyable = ({ text, label = text }: { readonly text: string; readonly label?: string }) => {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    // Pages over plain http have no clipboard; there the text is selected by hand.
    await navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return (
    <button type="button" className={css["id"]} title="Copy" onClick={() => void copy()}>
      {copied ? "copied" : label}
    </button>
  );
};

export const Skeleton = ({ rows = 3 }: { readonly rows?: number }) => (
  <div className="stack" aria-hidden="true" data-skeleton>
    {Array.from({ length: rows }, (_, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the bars have no identity
      <div key={at} className={css["skeleton"]} />
    ))}
  </div>
);

/** Says what would be here, and offers the one next step. */
export const Empty = ({ children, action }: { readonly children: ReactNode; readonly action?: ReactNode }) => (
  <div className={css["empty"]}>
    <p>{children}</p>
    {action}
  </div>
);

export interface Read<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

/** The states of a read. What was read before stays on the page, with the failure above it. */
export const Loaded = <T,>({ read, rows = 3, children }: { readonly read: Read<T>; readonly rows?: number; readonly children: (data: T) => ReactNode }) => {
  const { data, error, refetch } = read;
  return (
    <>
      {error === null ? null : <Failure error={error} retry={() => refetch()} />}
      {data === undefined ? error === null ? <Skeleton rows={rows} /> : null : children(data)}
    </>
  );
};
