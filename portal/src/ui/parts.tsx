// The parts that every screen is made of: page, panel, facts, a copyable id, and the states of a read: loading, failed, empty.
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { Failure } from "./failure.tsx";
import css from "./parts.module.css";

export interface PageProps {
  readonly title: string;
  /** Beside the title: a state, an id. */
  readonly beside?: ReactNode;
  readonly actions?: ReactNode;
  /** As high as the window: a table in it scrolls by itself. */
  readonly fill?: boolean;
  /** Instead of those of the place. */
  readonly tabs?: ReactNode;
  readonly children: ReactNode;
}

/** The tabs of the place that a page is one of. */
export const PageTabs = createContext<ReactNode>(null);

export const useTitle = (title: string): void => {
  useEffect(() => {
    document.title = `${title} · Mooring`;
  }, [title]);
};

export const Page = ({ title, beside, actions, fill = false, tabs, children }: PageProps) => {
  useTitle(title);
  const tabsOfPlace = useContext(PageTabs);
  return (
    <div className={css["page"]} data-fill={fill || undefined}>
      <header className={css["pageHead"]}>
        <div className={css["title"]}>
          <h1>{title}</h1>
          {beside}
        </div>
        {actions === undefined ? null : <div className="row">{actions}</div>}
      </header>
      {tabs ?? tabsOfPlace}
      {children}
    </div>
  );
};

interface PanelProps {
  readonly title: string;
  readonly icon?: ReactNode;
  readonly beside?: ReactNode;
  readonly children: ReactNode;
}
export const Panel = ({ title, icon, beside, children }: PanelProps) => (
  <section className={css["panel"]} aria-label={title}>
    <div className={css["panelHead"]}>
      <h2>
        {icon}
        {title}
      </h2>
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

/** Whether so much time has passed. */
const useAfter = (ms: number): boolean => {
  const [isOver, setIsOver] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsOver(true), ms);
    return () => clearTimeout(timer);
  }, [ms]);
  return isOver;
};
/** What is read sooner shows no bars. */
const SOON_MS = 150;
const LATE_MS = 8_000;

export const Skeleton = ({ rows = 3 }: { readonly rows?: number }) => {
  const isShown = useAfter(SOON_MS);
  return (
    <div className={css["skeletons"]} aria-hidden="true" data-skeleton data-shown={isShown || undefined}>
      {Array.from({ length: rows }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the bars have no identity
        <div key={at} className={css["skeleton"]} />
      ))}
    </div>
  );
};
const Waiting = ({ rows }: { readonly rows: number }) => (
  <div role="status">
    <Skeleton rows={rows} />
    {useAfter(LATE_MS) ? <p className="muted">This takes longer than usual.</p> : null}
  </div>
);

/** Says what would be here, and offers the one next step. */
export const Empty = ({ title, children, action }: { readonly title?: string; readonly children: ReactNode; readonly action?: ReactNode }) => (
  <div className={css["empty"]}>
    {title === undefined ? null : <strong>{title}</strong>}
    <p>{children}</p>
    {action}
  </div>
);

export interface Read<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly dataUpdatedAt?: number;
  readonly refetch: () => unknown;
}

/** The states of a read. What was read before stays on the page, with the failure above it. */
export const Loaded = <T,>({ read, rows = 3, children }: { readonly read: Read<T>; readonly rows?: number; readonly children: (data: T) => ReactNode }) => {
  const { data, error, dataUpdatedAt = 0, refetch } = read;
  return (
    <>
      {error === null ? null : <Failure error={error} retry={() => refetch()} again shownFrom={data === undefined ? 0 : dataUpdatedAt} />}
      {data === undefined ? error === null ? <Waiting rows={rows} /> : null : children(data)}
    </>
  );
};
