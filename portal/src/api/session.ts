// Who is signed in, and what this person may do in the tenant.
import { useSuspenseQuery } from "@tanstack/react-query";
import { api, calls, queryClient } from "./client.ts";

/** The person's identity and permissions; every screen below the shell has it already. */
export const useMe = () => useSuspenseQuery({ ...api.general.me.queryOptions({}), staleTime: 60_000 }).data;

/** Whether the person holds a permission, such as `device:command`. */
export const useMay = (): ((permission: string) => boolean) => {
  const { permissions } = useMe();
  return (permission) => permissions.includes(permission);
};

/** After a sign-in: everything is read again, also what had been refused. */
export const resume = async (): Promise<void> => {
  calls.set({ signedOut: false });
  await queryClient.invalidateQueries();
};
