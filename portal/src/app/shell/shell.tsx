// The frame around every screen: the rail or the bars of a phone, the tabs of a place, the search and the keys.
import { useLocation, useMatches, useNavigate } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useLayoutEffect, useMemo, useState } from "react";
import { useMe } from "../../api/session.ts";
import { focusFilter, useKeys } from "../../ui/keyboard.ts";
import { Page, PageTabs, Skeleton } from "../../ui/parts.tsx";
import { PermittedScreen } from "../permitted.tsx";
import { type Entry, entriesFor, entryAt, isOpenTo, PLACES } from "../places.ts";
import { layout, toggleRail } from "./layout.ts";
import { NotLive } from "./not-live.tsx";
import { PlaceTabs } from "./place-tabs.tsx";
import { type FrameProps, Rail } from "./rail.tsx";
import settings from "./settings.module.css";
import css from "./shell.module.css";

const Palette = lazy(() => import("../palette.tsx").then(({ Palette: component }) => ({ default: component })));
const Keys = lazy(() => import("../keys.tsx").then(({ Keys: component }) => ({ default: component })));

const loadNarrow = () => import("./narrow-settings.tsx");
const BackToSettings = lazy(async () => ({ default: (await loadNarrow()).BackToSettings }));
const SettingsList = lazy(async () => ({ default: (await loadNarrow()).SettingsList }));

const Announcements = lazy(() => import("./announcements.tsx").then(({ Announcements: component }) => ({ default: component })));

const Impersonation = lazy(() => import("./impersonation.tsx").then(({ Impersonation: component }) => ({ default: component })));

const loadBars = () => import("./phone-bars.tsx");
const TopBar = lazy(async () => ({ default: (await loadBars()).TopBar }));
const BottomBar = lazy(async () => ({ default: (await loadBars()).BottomBar }));
// A phone has them before it knows who is there.
if (layout.get().form === "phone") void loadBars();

/** The innermost tabs: a place of the settings may have tabs of its own. */
const chooseTab = (at: number): void => [...document.querySelectorAll("main [data-strip]")].at(-1)?.querySelectorAll<HTMLElement>("a")[at - 1]?.click();

/** Keys with Ctrl, Cmd or Alt, which mean something while somebody types, too. */
const useHeldKeys = (onFind: () => void): void => {
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const isFind = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
      const tab = event.altKey && !event.ctrlKey ? /^Digit([1-9])$/.exec(event.code)?.[1] : undefined;
      if (!isFind && tab === undefined) return;
      event.preventDefault();
      if (tab === undefined) onFind();
      else chooseTab(Number(tab));
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [onFind]);
};

const loading = (
  <Page title="Loading">
    <Skeleton rows={8} />
  </Page>
);

/** What the address of the first part of the settings says after `#`: without it, the address is that of their list. */
const FIRST_PART = "first";

interface SettingsProps {
  readonly entry: Entry;
  readonly pathname: string;
  readonly screen: ReactNode;
}
/** The screen stays the same part of the page in whatever width, with what somebody has typed. */
const Settings = ({ entry, pathname, screen }: SettingsProps) => {
  const { isTight } = layout.use();
  const hash = useLocation({ select: ({ hash: after }) => after });
  const isList = isTight && hash !== FIRST_PART && pathname === entry.root;
  return (
    <div className={settings["settings"]} data-tight={isTight || undefined}>
      <Suspense fallback={null}>{isTight ? isList ? null : <BackToSettings entry={entry} /> : <PlaceTabs entry={entry} pathname={pathname} />}</Suspense>
      <div className={settings["inner"]}>
        <Suspense fallback={loading}>{isList ? <SettingsList entry={entry} first={FIRST_PART} /> : screen}</Suspense>
      </div>
    </div>
  );
};

const Screen = ({ here, pathname }: { readonly here: Entry | undefined; readonly pathname: string }) => {
  const screen = (
    <Suspense fallback={loading}>
      <PermittedScreen pathname={pathname} />
    </Suspense>
  );
  if (here === undefined || here.tabs.length < 2) return screen;
  if (here.group === "foot") return <Settings entry={here} pathname={pathname} screen={screen} />;
  const isTab = here.tabs.some(({ to }) => to === pathname);
  return <PageTabs value={isTab ? <PlaceTabs entry={here} pathname={pathname} /> : null}>{screen}</PageTabs>;
};

export const Shell = () => {
  const me = useMe();
  const navigate = useNavigate();
  const { form } = layout.use();
  const [opened, setOpened] = useState<"palette" | "keys" | null>(null);
  // Not the location, which is ahead of the screen while the next one loads.
  const pathname = useMatches({ select: (matches) => matches.at(-1)?.pathname ?? "/" });
  const entries = useMemo(() => entriesFor(me), [me]);
  const here = entryAt(entries, pathname);
  const actions = useMemo(() => ({ onFind: () => setOpened("palette"), onKeys: () => setOpened("keys"), close: () => setOpened(null) }), []);
  const keys = useMemo(
    () => ({
      "?": actions.onKeys,
      "/": focusFilter,
      "[": toggleRail,
      ...Object.fromEntries(PLACES.flatMap(({ key, to }) => (key === undefined ? [] : [[`g ${key}`, () => void navigate({ to })]]))),
    }),
    [navigate, actions],
  );
  useKeys(keys);
  useHeldKeys(actions.onFind);
  const frame: FrameProps = { entries, here, pathname, isLive: me.permissions.includes("event:read"), onFind: actions.onFind, onKeys: actions.onKeys };
  return (
    <div className={css["shell"]} data-form={form}>
      {form === "phone" ? (
        <Suspense fallback={null}>
          <TopBar {...frame} />
        </Suspense>
      ) : (
        <Rail {...frame} />
      )}
      <main className={css["content"]}>
        <NotLive />
        {me.impersonation === null ? null : (
          <Suspense fallback={null}>
            <Impersonation />
          </Suspense>
        )}
        {me.announcements.length === 0 ? null : (
          <Suspense fallback={null}>
            <Announcements />
          </Suspense>
        )}
        <Screen here={here} pathname={pathname} />
      </main>
      <Suspense fallback={null}>
        {form === "phone" ? <BottomBar {...frame} /> : null}
        {opened === "palette" ? <Palette places={PLACES.filter((place) => isOpenTo(place, me))} onClose={actions.close} /> : null}
        {opened === "keys" ? <Keys onClose={actions.close} /> : null}
      </Suspense>
    </div>
  );
};
