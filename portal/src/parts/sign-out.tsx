// The button that ends the session of this browser, or the use of a pasted access token in this tab.
import { useMutation } from "@tanstack/react-query";
import { api, forgetToken } from "../api/client.ts";
import { Failure } from "../ui/failure.tsx";

interface SignOutProps {
  readonly label?: string;
  /** Remains at this address, to sign in for it as somebody else. */
  readonly stays?: boolean;
}

export const useSignOut = (stays = false) =>
  useMutation(
    api.sessions.logout.mutationOptions({
      onSuccess: ({ endSessionUrl }) => {
        forgetToken();
        if (stays) location.reload();
        else location.assign(endSessionUrl ?? "/sign-in");
      },
    }),
  );

export const SignOut = ({ label = "Sign out", stays = false }: SignOutProps) => {
  const logout = useSignOut(stays);
  return (
    <>
      {logout.error === null ? null : <Failure key={logout.submittedAt} error={logout.error} />}
      <button type="button" disabled={logout.isPending} onClick={() => logout.mutate({})}>
        {label}
      </button>
    </>
  );
};
