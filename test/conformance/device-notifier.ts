// The device notifier over every bus and directory: hints reach the node that holds the device, and a dead node is forgotten.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { SessionOwnerDirectory } from "../../server/core/session-owner-directory.ts";
import { createCourier, nodeChannel } from "../../server/gateway/channel/courier.ts";
import type { Bus, BusMessage } from "../../server/platform/bus.ts";
import { eventually } from "../kit/eventually.ts";

export const deviceNotifierSuite = (open: () => { readonly bus: Bus; readonly directory: SessionOwnerDirectory }): void => {
  const prepare = () => {
    const { bus, directory } = open();
    const errors: unknown[] = [];
    return { bus, directory, errors, notifier: createCourier({ bus, directory, onError: (error) => errors.push(error) }) };
  };
  const name = (kind: string) => `${kind}_${randomUUID()}`;

  test("a nudge that reaches nobody removes the dead node's entry for exactly these devices", async () => {
    const { bus, directory, notifier, errors } = prepare();
    const [dead, alive, lost, moved, kept] = [name("node"), name("node"), name("dev"), name("dev"), name("dev")];
    const heard: BusMessage[] = [];
    const stop = await bus.subscribe(nodeChannel(alive), (message) => heard.push(message));
    for (const deviceId of [lost, kept]) await directory.claim(deviceId, dead, 1);
    await directory.claim(moved, alive, 2);
    notifier.nudge([lost, moved]);
    await eventually(async () => expect(await directory.owner(lost)).toBeNull());
    await eventually(() => expect(heard).toEqual([{ op: "nudge", deviceIds: moved }]));
    expect([await directory.owner(moved), await directory.owner(kept), errors]).toEqual([alive, dead, []]);
    await stop();
  });

  test("a cancel that reaches nobody removes the dead node's entry", async () => {
    const { directory, notifier } = prepare();
    const deviceId = name("dev");
    await directory.claim(deviceId, name("node"), 1);
    notifier.cancel(deviceId, { commandId: "cmd_1", deadline: new Date(0).toISOString() });
    await eventually(async () => expect(await directory.owner(deviceId)).toBeNull());
  });

  test("a nudge follows the node that the caller knows from the database, not the directory", async () => {
    const { bus, directory, notifier, errors } = prepare();
    const [old, holder, device] = [name("node"), name("node"), name("dev")];
    const heard: BusMessage[] = [];
    const stop = await bus.subscribe(nodeChannel(holder), (message) => heard.push(message));
    await directory.claim(device, old, 1);
    notifier.nudge([device], () => holder);
    await eventually(() => expect(heard).toEqual([{ op: "nudge", deviceIds: device }]));
    expect([await directory.owner(device), errors]).toEqual([old, []]);
    await stop();
  });
};
