// The error of a read that has never had data, kept while it is asked again: the query forgets it then, and what stands for the error would vanish for a moment.
import { useState } from "react";

interface Asked<E> {
  readonly data: unknown;
  readonly error: E | null;
  readonly fetchStatus: "fetching" | "paused" | "idle";
}

export const useKeptError = <E>({ data, error, fetchStatus }: Asked<E>): E | null => {
  const [kept, setKept] = useState(error);
  const isAskedAgain = data === undefined && error === null && fetchStatus === "fetching";
  if (!isAskedAgain && kept !== error) setKept(error);
  return isAskedAgain ? kept : error;
};
