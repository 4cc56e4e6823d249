// Decides what somebody sees: the sign-in, or the shell with the screen. A session that ends later asks over the page, which keeps what was typed.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, calls, hasSession } from "../api/client.ts";
import { SignIn } from "../screens/sign-in/sign-in.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Failure } from "../ui/failure.tsx";
import { Page, Skeleton } from "../ui/parts.tsx";
import { Shell } from "./shell.tsx";

const stay = (): void => undefined;

export const Gate = () => {
  const { signedOut } = calls.use();
  const me = useQuery({ ...api.general.me.queryOptions({}), staleTime: 60_000, enabled: hasSession() || signedOut === false });
  useEffect(() => {
    if (me.data !== undefined) calls.set({ signedOut: false });
  }, [me.data]);
  if (me.data === undefined) {
    if (signedOut || !hasSession()) return <SignIn />;
    return <Page title="Mooring">{me.error === null ? <Skeleton rows={6} /> : <Failure error={me.error} retry={() => void me.refetch()} />}</Page>;
  }
  return (
    <>
      <Shell />
      <Dialog title="Your session has ended" open={signedOut} onClose={stay}>
        <SignIn inDialog />
      </Dialog>
    </>
  );
};
