// Whether a webhook is still there to be read: nothing asks for one that is being deleted, which the gateway would refuse as unknown.
import { useIsMutating } from "@tanstack/react-query";
import { api } from "../../api/client.ts";

/** For `enabled`. The deletion ends when the page has left the webhook. */
export const useRemains = (): boolean => useIsMutating({ mutationKey: api.webhooks.remove.mutationKey() }) === 0;
