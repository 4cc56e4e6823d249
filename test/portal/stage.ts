// A tenant with a device, its agent, and a person in front of the console: for the tests of screens that show devices and commands.
import type { Page } from "playwright-core";
import type { AgentOptions } from "../../agent-sim/agent/index.ts";
import type { Chromium, Visitor } from "../kit/browser/chromium.ts";
import { handlersOf, openAgent } from "../kit/gateway/agents.ts";
import type { Caller, Device, TestTenant, World } from "../kit/gateway/world.ts";

/** Filters a list by this and nothing else. */
export const filterBy = async (page: Page, name: string, typed: string): Promise<void> => {
  const remove = page.getByRole("button", { name: /^Remove the filter / });
  while ((await remove.count()) > 0) await remove.first().click();
  await page.getByRole("combobox", { name }).fill(typed);
};

/** The filters that stand as tokens in the line. */
export const tokensOf = async (page: Page): Promise<readonly string[]> =>
  (await page.getByRole("button", { name: /^Remove the filter / }).all()).reduce<Promise<string[]>>(
    async (before, button) => [...(await before), ((await button.getAttribute("aria-label")) ?? "").replace("Remove the filter ", "")],
    Promise.resolve([]),
  );

export interface Gate {
  /** Ends every `work` that runs, and all later ones. */
  open(): void;
}

export interface Stage {
  readonly tenant: TestTenant;
  readonly owner: Caller;
  readonly device: Device;
  readonly visitor: Visitor;
  /** The id of a new command of the device, ordered over the API. */
  queue(body?: object, device?: Device): Promise<string>;
  /** All commands of the device. */
  commands(): Promise<readonly { readonly commandId: string; readonly type: string; readonly status: string; readonly payload: unknown }[]>;
  /** Connects the device. A command of the type `work` runs until the gate opens. */
  connect(options?: Partial<AgentOptions>): Gate;
  close(): Promise<void>;
}

/** An agent whose commands of the type `work` run until somebody opens the gate. */
const startWorker = (world: World, device: Device, options: Partial<AgentOptions>) => {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const work = {
    long: true,
    cancelable: true,
    run: async (_payload: unknown, { progress }: { progress(pct: number, message: string): void }) => {
      progress(40, "two of five");
      await opened;
      return { worked: true };
    },
  };
  const { agent, stop } = openAgent(world.url, device, { handlers: { ...handlersOf(), work }, ...options });
  agent.start();
  return {
    open,
    stop: async () => {
      open();
      await stop();
    },
  };
};

export const openStage = async (world: World, chromium: Chromium, path: (deviceId: string) => string, { name = "attic" } = {}): Promise<Stage> => {
  const tenant = await world.tenant();
  const owner = await tenant.user();
  const device = await tenant.device();
  await world.call(owner, "PATCH", `/v1/devices/${device.deviceId}`, { body: { name } });
  const visitor = await chromium.visitor();
  await visitor.signIn(tenant.ownerId, { path: path(device.deviceId) });
  const ends: (() => Promise<void>)[] = [];
  return {
    ...{ tenant, owner, device, visitor },
    queue: async (body = {}, { deviceId } = device) => {
      const { status, body: answer } = await world.call(owner, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping", ...body } });
      if (status !== 201) throw new Error(`no command was queued: ${JSON.stringify(answer)}`);
      return answer.data.commandId;
    },
    commands: async () => (await world.call(owner, "GET", `/v1/devices/${device.deviceId}/commands`)).body.data,
    connect: (options = {}) => {
      const { open, stop } = startWorker(world, device, options);
      ends.push(stop);
      return { open };
    },
    close: async () => {
      for (const end of ends) await end();
      await visitor.close();
    },
  };
};
