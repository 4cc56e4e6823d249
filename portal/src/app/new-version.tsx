// Says that the gateway serves a newer console than this page. Every new stream, and so every restart of the gateway, asks again.
import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";

/** The gateway answers it from memory, and counts it against no limit. */
const readTag = async (): Promise<string | null> => (await fetch("/", { method: "HEAD", headers: { accept: "text/html" } })).headers.get("etag");

export const NewVersion = () => {
  const { data = null } = useQuery({ queryKey: ["console"], queryFn: readTag, staleTime: Number.POSITIVE_INFINITY, refetchInterval: false });
  const first = useRef<string | null>(null);
  first.current ??= data;
  if (data === null || data === first.current) return null;
  return (
    <button type="button" data-kind="primary" onClick={() => location.reload()}>
      New version, reload
    </button>
  );
};
