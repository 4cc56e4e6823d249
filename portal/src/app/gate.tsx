// Decides what somebody sees: the sign-in, or the shell with the screen. A session that ends later asks over the page, which keeps what was typed.
import { useQuery } from "@tanstack/react-query";
import { Outlet, useLocation } from "@tanstack/react-router";
import { Suspense, useEffect } from "react";
import { api, calls, hasSession } from "../api/client.ts";
import { SignIn, Ways } from "../screens/sign-in/sign-in.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Failure } from "../ui/failure.tsx";
import { Page, Skeleton } from "../ui/parts.tsx";
import { NoTenant } from "./no-tenant.tsx";
import { Shell } from "./shell.tsx";
import css from "./signed-out-frame.module.css";
import { SignedOutFrame } from "./signed-out-frame.tsx";

const INVITE = "/invite";
/** Screens that need no tenant. */
const OUTSIDE: readonly string[] = [INVITE, "/account", "/nodes"];

const stay = (): void => undefined;

/** An invited person reads what the invite is for before the sign-in. */
const SignedOut = ({ path }: { readonly path: string }) => {
  if (path !== INVITE) return <SignIn />;
  return (
    <SignedOutFrame>
      <Suspense fallback={<Skeleton rows={4} />}>
        <Outlet />
      </Suspense>
      <section className={css["apart"]} aria-label="Sign in">
        <Ways inDialog={false} />
      </section>
    </SignedOutFrame>
  );
};

const Screen = ({ path, tenantId }: { readonly path: string; readonly tenantId: string | null }) => {
  if (tenantId !== null) return <Shell />;
  return (
    <SignedOutFrame>
      <Suspense fallback={<Skeleton rows={4} />}>{OUTSIDE.includes(path) ? <Outlet /> : <NoTenant />}</Suspense>
    </SignedOutFrame>
  );
};

export const Gate = () => {
  const { signedOut } = calls.use();
  const path = useLocation({ select: ({ pathname }) => pathname });
  const me = useQuery({ ...api.general.me.queryOptions({}), staleTime: 60_000, enabled: hasSession() });
  useEffect(() => {
    if (me.data !== undefined) calls.set({ signedOut: false });
  }, [me.data]);
  if (me.data === undefined) {
    if (signedOut || !hasSession()) return <SignedOut path={path} />;
    return <Page title="Mooring">{me.error === null ? <Skeleton rows={6} /> : <Failure error={me.error} retry={() => void me.refetch()} />}</Page>;
  }
  return (
    <>
      <Screen path={path} tenantId={me.data.tenantId} />
      <Dialog title="Your session has ended" open={signedOut} onClose={stay}>
        <SignIn inDialog />
      </Dialog>
    </>
  );
};
