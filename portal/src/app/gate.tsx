// Decides what somebody sees: the sign-in, or the shell with the screen. A session that ends later asks over the page, which keeps what was typed.
import { useQuery } from "@tanstack/react-query";
import { Outlet, useLocation } from "@tanstack/react-router";
import { lazy, Suspense, useEffect } from "react";
import { api, calls, hasSession, pageTenant, stayIn } from "../api/client.ts";
import { Failure } from "../ui/failure.tsx";
import { Page, Skeleton } from "../ui/parts.tsx";
import { Shell } from "./shell/shell.tsx";
import css from "./signed-out-frame.module.css";
import { SignedOutFrame } from "./signed-out-frame.tsx";

const NoTenant = lazy(async () => ({ default: (await import("./no-tenant.tsx")).NoTenant }));
const SessionEnded = lazy(async () => ({ default: (await import("./session-ended.tsx")).SessionEnded }));
const loadSignIn = () => import("../screens/sign-in/sign-in.tsx");
const SignIn = lazy(async () => ({ default: (await loadSignIn()).SignIn }));
const Ways = lazy(async () => ({ default: (await loadSignIn()).Ways }));

const INVITE = "/invite";
/** Screens that need no tenant. */
const OUTSIDE: readonly string[] = [INVITE, "/account", "/nodes"];

/** An invited person reads what the invite is for before the sign-in. */
const SignedOut = ({ path }: { readonly path: string }) => {
  if (path !== INVITE)
    return (
      <Suspense fallback={null}>
        <SignIn />
      </Suspense>
    );
  return (
    <SignedOutFrame>
      <Suspense fallback={<Skeleton rows={4} />}>
        <Outlet />
      </Suspense>
      <section className={css["apart"]} aria-label="Sign in">
        <Suspense fallback={<Skeleton rows={2} />}>
          <Ways inDialog={false} />
        </Suspense>
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
  // Before any screen calls.
  if (pageTenant() === undefined && me.data.tenantId !== null) stayIn(me.data.tenantId);
  return (
    <>
      <Screen path={path} tenantId={me.data.tenantId} />
      <Suspense fallback={null}>{signedOut ? <SessionEnded /> : null}</Suspense>
    </>
  );
};
