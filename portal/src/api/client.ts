// The console's client: calls the gateway that served this page, in the browser's session, and keeps the answers.
import { type AppRouter, createMooring, isMooringError, type Mooring, type MooringError } from "@mooring/client";
import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { createTRPCOptionsProxy, type TRPCOptionsProxy } from "@trpc/tanstack-react-query";
import { gatewayNow } from "../ui/clock.ts";
import { createStore } from "./store.ts";

/** What the whole page knows of its calls: whether the session has ended, and until when the gateway asks to wait. */
export const calls = createStore<{ readonly signedOut: boolean; readonly waitUntil: number | null }>({ signedOut: false, waitUntil: null });

export const codeOf = (error: unknown): string | undefined => (isMooringError(error) ? error.data?.app.code : undefined);

/** Queries and mutations do this by themselves. */
export const note = (error: unknown): void => {
  // Nobody signs in again for it: the person's own session goes on.
  if (isMooringError(error) && error.data?.app.details?.["reason"] === "impersonation_ended") leaveImpersonation();
  else if (codeOf(error) === "UNAUTHORIZED") calls.set({ signedOut: true });
  if (isMooringError(error)) wait(error, error.data?.app.retryAfter ?? 0);
};
const wait = (error: MooringError, seconds: number): void => {
  if (error.data?.app.code === "RATE_LIMIT_EXCEEDED") calls.set({ waitUntil: gatewayNow() + 1_000 * seconds });
};

const TOKEN = "mooring.token";
const token = sessionStorage.getItem(TOKEN);
/** Whether this tab acts with an access token instead of a session: then a plain link to the API is refused. */
export const usesToken = token !== null;
export const forgetToken = (): void => sessionStorage.removeItem(TOKEN);
/** Acts with an access token instead of a session, in this tab. */
export const keepToken = (text: string): void => {
  sessionStorage.setItem(TOKEN, text);
  location.reload();
};
/** Acts in a member's name, in this tab, from the first page on. */
export const impersonate = (text: string): void => {
  sessionStorage.setItem(TOKEN, text);
  location.assign("/");
};
/** Goes back to the person's own session. */
export const leaveImpersonation = (): void => {
  forgetToken();
  location.assign("/nodes?tab=impersonations");
};
/** Whether a call may succeed at all: spares a page without a session a call that is refused. */
export const hasSession = (): boolean => token !== null || /(?:^|; )(?:__Host-)?mooring_csrf=/.test(document.cookie);

let tenant: string | undefined;
/** The tenant that this page is about, until it is loaded again: another page of the browser may go to another one meanwhile. */
export const pageTenant = (): string | undefined => tenant;
export const stayIn = (tenantId: string | undefined): void => {
  tenant = tenantId;
};

export const mooring: Mooring = createMooring({ url: location.origin, onRetry: wait, tenantId: pageTenant, ...(token === null ? {} : { token }) });

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: note }),
  mutationCache: new MutationCache({ onError: note }),
  defaultOptions: {
    // The client repeats what may pass. Events say when an answer is out of date; the interval is for what has no event.
    queries: { retry: false, staleTime: 10_000, refetchInterval: 30_000, networkMode: "always" },
    mutations: { networkMode: "always" },
  },
});

export const api: TRPCOptionsProxy<AppRouter> = createTRPCOptionsProxy<AppRouter>({ client: mooring, queryClient });
