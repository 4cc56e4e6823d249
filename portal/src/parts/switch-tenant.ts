// Goes to another tenant of the person. A session that is bound to one tenant stays there, and says so.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, mooring, stayIn } from "../api/client.ts";
import { useMe } from "../api/session.ts";

export const TENANT_STAYS = "This session is bound to one tenant. Sign in again to work in another.";

/** `landing`: the address that the page has then. Nothing that was read of the other tenant stays. */
export const useSwitchTenant = (landing: string) => {
  const { tenantId: before } = useMe();
  const [stays, setStays] = useState(false);
  const choose = useMutation(
    api.account.switchTenant.mutationOptions({
      onSuccess: async ({ tenantId }) => {
        stayIn(undefined);
        const { tenantId: now } = await mooring.general.me.query({});
        if (now === tenantId || now !== before) return location.assign(landing);
        stayIn(before ?? undefined);
        setStays(true);
      },
    }),
  );
  const forget = (): void => {
    setStays(false);
    choose.reset();
  };
  return { choose, stays, forget };
};
