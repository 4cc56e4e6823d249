// The guarantees of every bus, whatever its implementation.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { BusMessage } from "../../server/core/ports/pub-sub.ts";
import type { Bus } from "../../server/platform/cluster/bus.ts";
import { eventually } from "../kit/checks/eventually.ts";

export const busSuite = (open: () => Bus): void => {
  const listen = async (bus: Bus, channel: string) => {
    const heard: BusMessage[] = [];
    const stop = await bus.subscribe(channel, (message) => heard.push(message));
    return { heard, stop };
  };
  const fresh = () => `test:${randomUUID()}`;

  test("a message reaches every listener of its channel once, and no other", async () => {
    const [bus, channel] = [open(), fresh()];
    const [one, two, other] = [await listen(bus, channel), await listen(bus, channel), await listen(bus, fresh())];
    await bus.publish(channel, { op: "nudge", n: 1, sure: true, none: null, text: 'ä\n"' });
    await eventually(() => expect([one.heard.length, two.heard.length]).toEqual([1, 1]));
    expect(one.heard).toEqual([{ op: "nudge", n: 1, sure: true, none: null, text: 'ä\n"' }]);
    expect(other.heard).toEqual([]);
  });

  test("messages of one sender arrive in order", async () => {
    const [bus, channel] = [open(), fresh()];
    const { heard } = await listen(bus, channel);
    await Promise.all(Array.from({ length: 200 }, (_, n) => bus.publish(channel, { n })));
    await eventually(() => expect(heard.length).toBe(200));
    expect(heard.map(({ n }) => n)).toEqual(Array.from({ length: 200 }, (_, n) => n));
  });

  test("publish delivers nothing before it returns", async () => {
    const [bus, channel] = [open(), fresh()];
    const { heard } = await listen(bus, channel);
    const published = bus.publish(channel, { n: 1 });
    expect(heard).toEqual([]);
    await published;
    await eventually(() => expect(heard.length).toBe(1));
  });

  test("a listener that has stopped hears nothing more, and the others go on", async () => {
    const [bus, channel] = [open(), fresh()];
    const [leaving, staying] = [await listen(bus, channel), await listen(bus, channel)];
    await leaving.stop();
    await bus.publish(channel, { n: 1 });
    await eventually(() => expect(staying.heard.length).toBe(1));
    await staying.stop();
    const again = await listen(bus, channel);
    await bus.publish(channel, { n: 2 });
    await eventually(() => expect(again.heard).toEqual([{ n: 2 }]));
    expect([leaving.heard.length, staying.heard.length]).toEqual([0, 1]);
  });

  test("publish reports whether anybody received the message, and a message without a receiver is no failure", async () => {
    const [bus, channel] = [open(), fresh()];
    const said = () => bus.publish(channel, { n: 1 });
    expect(await said()).toBe(false);
    const { stop } = await listen(bus, channel);
    expect(await said()).toBe(true);
    await stop();
    expect(await said()).toBe(false);
    expect(bus.stats.lost).toBe(0);
  });

  test("a message of 1 KiB passes, a longer one is refused", async () => {
    const [bus, channel] = [open(), fresh()];
    const { heard } = await listen(bus, channel);
    const frame = JSON.stringify({ text: "" }).length;
    await expect(bus.publish(channel, { text: "x".repeat(1_025 - frame) })).rejects.toThrow("1024 bytes");
    await bus.publish(channel, { text: "x".repeat(1_024 - frame) });
    await eventually(() => expect(heard.length).toBe(1));
  });
};
