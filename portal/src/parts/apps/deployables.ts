// Apps and deployments move together: both are read again after a change of either.
import { api, queryClient } from "../../api/client.ts";

export const readDeployablesAgain = async (): Promise<void> => {
  await Promise.all([queryClient.invalidateQueries(api.apps.pathFilter()), queryClient.invalidateQueries(api.deployments.pathFilter())]);
};
