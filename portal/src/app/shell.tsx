// The frame around every screen: places, the live state, the tenant, and the person.
import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { calls } from "../api/client.ts";
import { useFeed } from "../api/events.ts";
import { live } from "../api/live.ts";
import { useMe } from "../api/session.ts";
import { focusFilter, useKeys } from "../ui/keyboard.ts";
import { Page, Skeleton } from "../ui/parts.tsx";
import { Shape } from "../ui/status.tsx";
import { useNow } from "../ui/time.tsx";
import { NewVersion } from "./new-version.tsx";
import { PermittedScreen } from "./permitted.tsx";
import { isOpenTo, PLACES } from "./places.ts";
import { nextScheme, scheme } from "./scheme.ts";
import css from "./shell.module.css";

const Palette = lazy(() => import("./palette.tsx").then(({ Palette: component }) => ({ default: component })));
const Keys = lazy(() => import("./keys.tsx").then(({ Keys: component }) => ({ default: component })));

const LiveState = () => {
  useFeed();
  const { link } = live.use();
  const { waitUntil } = calls.use();
  const now = useNow();
  const waits = waitUntil === null ? 0 : Math.ceil((waitUntil - now) / 1_000);
  if (waits > 0) return <p role="status">Rate limited, going on in {waits} s</p>;
  const [tone, words] = link === "live" ? (["good", "live"] as const) : (["warn", link === "paused" ? "paused" : "Reconnecting, data may be stale"] as const);
  return (
    <p role="status" className={css["live"]}>
      <Shape tone={tone} /> {words}
    </p>
  );
};

export const Shell = () => {
  const me = useMe();
  const navigate = useNavigate();
  const [opened, setOpened] = useState<"palette" | "keys" | null>(null);
  const { name } = scheme.use();
  const places = PLACES.filter((place) => isOpenTo(place, me));
  const keys = useMemo(
    () => ({
      "?": () => setOpened("keys"),
      "/": focusFilter,
      ...Object.fromEntries(PLACES.flatMap(({ key, to }) => (key === undefined ? [] : [[`g ${key}`, () => void navigate({ to })]]))),
    }),
    [navigate],
  );
  useKeys(keys);
  useEffect(() => {
    const open = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      setOpened("palette");
    };
    document.addEventListener("keydown", open);
    return () => document.removeEventListener("keydown", open);
  }, []);
  return (
    <div className={css["shell"]}>
      <nav className={css["rail"]} aria-label="Places">
        <div className={css["name"]}>Mooring</div>
        {places.map(({ to, word }) => (
          <Link key={to} to={to} className={css["place"]} activeProps={{ "data-here": true }} activeOptions={{ exact: to === "/", includeSearch: false }}>
            {word}
          </Link>
        ))}
        <button type="button" className={css["place"]} onClick={() => setOpened("palette")}>
          Go to <kbd>Ctrl K</kbd>
        </button>
        <div className={css["foot"]}>
          <NewVersion />
          {me.permissions.includes("event:read") ? <LiveState /> : null}
          <button type="button" className={css["place"]} onClick={nextScheme}>
            Colors: {name}
          </button>
        </div>
      </nav>
      <main className={css["content"]}>
        <Suspense
          fallback={
            <Page title="Loading">
              <Skeleton rows={8} />
            </Page>
          }
        >
          <PermittedScreen />
        </Suspense>
      </main>
      <Suspense fallback={null}>
        {opened === "palette" ? <Palette places={places} onClose={() => setOpened(null)} /> : null}
        {opened === "keys" ? <Keys onClose={() => setOpened(null)} /> : null}
      </Suspense>
    </div>
  );
};
