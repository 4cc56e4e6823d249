// The state of an app or a deployment, and whether it is as it should be.
import { inWords } from "../../../../protocol/kit/words.ts";
import { Status } from "../../ui/status.tsx";

/** A command that runs is at work; an app that runs is as it should be, and at work is what is updating or rolling back. */
const likeOf = (status: string): string => {
  if (status === "running") return "healthy";
  return status !== "pending" && status.includes("ing") ? "in_progress" : status;
};
export const shownStatus = (status: string) => ({ status: likeOf(status), word: inWords(status) });

export const AppStatus = ({ status, drift = false }: { readonly status: string; readonly drift?: boolean }) => (
  <>
    <Status {...shownStatus(status)} />
    {drift ? <Status status="warning" word="drift" /> : null}
  </>
);
