// Whether the page shows what is true now. While all is well a small word says so; trouble is said in a sentence.
import { calls } from "../../api/client.ts";
import { useFeed } from "../../api/events.ts";
import { live } from "../../api/live.ts";
import { Shape, type Tone } from "../../ui/status.tsx";
import { useNow } from "../../ui/time.tsx";
import { layout } from "./layout.ts";
import css from "./shell.module.css";

const STATES: Readonly<Record<string, readonly [tone: Tone, words: string]>> = { live: ["good", "live"], paused: ["warn", "paused"] };

const useLiveWords = (): readonly [tone: Tone, words: string] => {
  const { link } = live.use();
  const { waitUntil } = calls.use();
  const now = useNow();
  const waits = waitUntil === null ? 0 : Math.ceil((waitUntil - now) / 1_000);
  if (waits > 0) return ["warn", `Rate limited, going on in ${waits} s`];
  return STATES[link] ?? ["warn", "Reconnecting, data may be stale"];
};

export const LiveState = () => {
  useFeed();
  const { form } = layout.use();
  const [tone, words] = useLiveWords();
  return (
    <p role="status" className={css["live"]} data-trouble={tone === "warn" || undefined} title={words}>
      <Shape tone={tone} /> <span className={form === "names" || tone === "warn" ? "" : "out-of-sight"}>{words}</span>
    </p>
  );
};
