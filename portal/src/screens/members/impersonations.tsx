// Tells that an administrator of the installation acts in a member's name, and puts them out.
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Failure } from "../../ui/failure.tsx";
import { Notice } from "../../ui/notice.tsx";
import { exactTime } from "../../ui/time.tsx";
import { text } from "./text.ts";

const words = text.impersonations;
const SHOWN = 20;

const OpenImpersonations = () => {
  const may = useMay();
  const read = useQuery(api.impersonations.list.queryOptions({ open: true, pageSize: SHOWN }));
  const end = useMutation(api.impersonations.end.mutationOptions({ onSuccess: () => queryClient.invalidateQueries(api.impersonations.pathFilter()) }));
  if (read.error !== null) return <Failure error={read.error} retry={() => void read.refetch()} />;
  return (
    <>
      {end.error === null ? null : <Failure error={end.error} />}
      {(read.data?.items ?? []).map(({ impersonationId, adminId, userId, readOnly, reason, expiresAt }) => (
        <Notice
          key={impersonationId}
          tone="warn"
          title={words.title(adminId, userId)}
          actions={
            may("member:write") ? (
              <button type="button" disabled={end.isPending} onClick={() => end.mutate({ impersonationId })}>
                {words.end}
              </button>
            ) : undefined
          }
        >
          <span>{reason}</span>
          <span>{words.until(readOnly, exactTime(expiresAt))}</span>
        </Notice>
      ))}
    </>
  );
};

export const Impersonations = () => (useMay()("audit:read") ? <OpenImpersonations /> : null);
