// What the pages of apps and of deployments share: both are read again after a change of either, and the buttons of changes that need no question.
import type { UseMutationResult } from "@tanstack/react-query";
import { api, queryClient } from "../api/client.ts";
import { Failure } from "../ui/failure.tsx";

export const readDeployablesAgain = async (): Promise<void> => {
  await Promise.all([queryClient.invalidateQueries(api.apps.pathFilter()), queryClient.invalidateQueries(api.deployments.pathFilter())]);
};

export interface VerbButton {
  readonly word: string;
  readonly isOffered: boolean;
  readonly change: Pick<UseMutationResult, "isPending" | "reset" | "submittedAt"> & { readonly error: unknown };
  readonly run: () => void;
}

/** One change at a time. The last refusal stays, also when its button is no longer offered. */
export const VerbButtons = ({ verbs }: { readonly verbs: readonly VerbButton[] }) => {
  const failed = verbs.find(({ change }) => change.error !== null)?.change;
  return (
    <>
      {verbs
        .filter(({ isOffered }) => isOffered)
        .map(({ word, run }) => (
          <button
            key={word}
            type="button"
            disabled={verbs.some(({ change }) => change.isPending)}
            onClick={() => {
              for (const { change } of verbs) change.reset();
              run();
            }}
          >
            {word}
          </button>
        ))}
      {failed === undefined ? null : <Failure key={failed.submittedAt} error={failed.error} />}
    </>
  );
};
