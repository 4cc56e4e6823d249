// Says that the gateway serves a newer console than this page: every new stream, and so every restart, reads the version again.
import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { api } from "../api/client.ts";

export const NewVersion = () => {
  const { data } = useQuery({ ...api.general.info.queryOptions({}), staleTime: Number.POSITIVE_INFINITY, refetchInterval: false });
  const now = data === undefined ? null : `${data.version} ${data.commit}`;
  const first = useRef<string | null>(null);
  first.current ??= now;
  if (now === null || now === first.current) return null;
  return (
    <button type="button" data-kind="primary" onClick={() => location.reload()}>
      New version, reload
    </button>
  );
};
