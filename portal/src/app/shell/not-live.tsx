// Says above the screen that no news comes in, and since when.
import { live } from "../../api/live.ts";
import { Notice } from "../../ui/notice.tsx";
import { clockOf, Since } from "../../ui/time.tsx";
import css from "./shell.module.css";

export const NotLive = () => {
  const { lostAt } = live.use();
  if (lostAt === null) return null;
  const at = new Date(lostAt).toISOString();
  return (
    <div className={css["notLive"]}>
      <Notice tone="warn" role="status" title="Reconnecting.">
        <span>
          No news since {clockOf(at)}, <Since at={at} /> ago. What you see may be out of date; what you typed stays.
        </span>
      </Notice>
    </div>
  );
};
