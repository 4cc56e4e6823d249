// The device notifier over every bus: what happens to a message for a node that is gone.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { SessionOwners } from "../../server/core/ports/agent-sessions.ts";
import type { BusMessage } from "../../server/core/ports/pub-sub.ts";
import { ALL_NODES, createDeviceNotifier, nodeChannel } from "../../server/gateway/channel/device-notifier.ts";
import type { Bus } from "../../server/platform/cluster/bus.ts";
import { eventually } from "../kit/checks/eventually.ts";

export const deviceNotifierSuite = (open: () => { readonly bus: Bus; readonly owners: SessionOwners }): void => {
  const prepare = () => {
    const { bus, owners } = open();
    const errors: unknown[] = [];
    return { bus, owners, errors, notifier: createDeviceNotifier({ bus, owners, onError: (error) => errors.push(error) }) };
  };
  const name = (kind: string) => `${kind}_${randomUUID()}`;

  test("a nudge that no node receives removes the dead owner of exactly these devices", async () => {
    const { bus, owners, notifier, errors } = prepare();
    const [dead, alive, lost, moved, kept] = [name("node"), name("node"), name("dev"), name("dev"), name("dev")];
    const heard: BusMessage[] = [];
    const stop = await bus.subscribe(nodeChannel(alive), (message) => heard.push(message));
    for (const deviceId of [lost, kept]) await owners.claim(deviceId, dead, 1);
    await owners.claim(moved, alive, 2);
    notifier.nudge([lost, moved]);
    await eventually(async () => expect(await owners.owner(lost)).toBeNull());
    await eventually(() => expect(heard).toEqual([{ op: "nudge", deviceIds: moved }]));
    expect([await owners.owner(moved), await owners.owner(kept), errors]).toEqual([alive, dead, []]);
    await stop();
  });

  test("a cancellation that no node receives removes the dead owner", async () => {
    const { owners, notifier } = prepare();
    const deviceId = name("dev");
    await owners.claim(deviceId, name("node"), 1);
    notifier.cancel(deviceId, { commandId: "cmd_1", deadline: new Date(0).toISOString() });
    await eventually(async () => expect(await owners.owner(deviceId)).toBeNull());
  });

  test("a cancellation for a device without a known owner goes to every node", async () => {
    const { bus, notifier, errors } = prepare();
    const device = name("dev");
    const heard: BusMessage[] = [];
    const stop = await bus.subscribe(ALL_NODES, (message) => heard.push(message));
    notifier.cancel(device, { commandId: "cmd_1", deadline: new Date(0).toISOString() });
    await eventually(() => expect(heard.filter(({ deviceId }) => deviceId === device)).toMatchObject([{ op: "cancel", commandId: "cmd_1" }]));
    expect(errors).toEqual([]);
    await stop();
  });

  test("a nudge goes to the node that the database named, not to an outdated owner", async () => {
    const { bus, owners, notifier, errors } = prepare();
    const [old, holder, device] = [name("node"), name("node"), name("dev")];
    const heard: BusMessage[] = [];
    const stop = await bus.subscribe(nodeChannel(holder), (message) => heard.push(message));
    await owners.claim(device, old, 1);
    notifier.nudge([device], () => holder);
    await eventually(() => expect(heard).toEqual([{ op: "nudge", deviceIds: device }]));
    expect([await owners.owner(device), errors]).toEqual([old, []]);
    await stop();
  });
};
