// How a device is called where people see it.

interface Named {
  readonly deviceId: string;
  readonly name?: string | undefined;
  readonly hostname?: string | undefined;
}

export const deviceLabel = ({ name, hostname, deviceId }: Named): string => name ?? hostname ?? deviceId;
