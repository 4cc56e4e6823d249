// The counts, each a link to the list of what it counts.
import { useQuery } from "@tanstack/react-query";
import { Link, type LinkProps } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { Failure } from "../../ui/failure.tsx";
import css from "./overview.module.css";
import { text } from "./text.ts";

interface TileProps {
  readonly link: Pick<LinkProps, "to" | "search">;
  readonly count: number | undefined;
  readonly word: string;
  readonly tone?: "good" | "bad" | undefined;
  readonly beside?: string;
}
const Tile = ({ link, count, word, tone, beside = "" }: TileProps) => (
  <Link {...link} className={css["tile"]} data-tone={tone}>
    <span className={css["count"]}>{count === undefined ? "–" : text.number(count)}</span> <span className={css["word"]}>{word}</span>{" "}
    <span className={css["share"]}>{beside}</span>
  </Link>
);

export const useDeviceCounts = () => {
  const read = useQuery(api.devices.summary.queryOptions({ groupBy: "status" }));
  const of = (status: string): number | undefined =>
    read.data === undefined ? undefined : (read.data.groups.find(({ value }) => value === status)?.count ?? 0);
  return { read, of, total: read.data?.total };
};

export const DeviceTiles = ({ counts: { read, of, total } }: { readonly counts: ReturnType<typeof useDeviceCounts> }) => {
  const share = (status: string): string => text.share(of(status) ?? 0, total ?? 0);
  return (
    <>
      {read.error === null ? null : <Failure error={read.error} retry={() => void read.refetch()} />}
      <Tile link={{ to: "/devices", search: {} }} count={total} word={text.tiles.all(total ?? 0)} />
      <Tile link={{ to: "/devices", search: { status: "online" } }} count={of("online")} word={text.tiles.online} tone="good" beside={share("online")} />
      <Tile
        link={{ to: "/devices", search: { status: "offline" } }}
        count={of("offline")}
        word={text.tiles.offline}
        tone={(of("offline") ?? 0) > 0 ? "bad" : undefined}
        beside={share("offline")}
      />
      <Tile link={{ to: "/devices", search: { status: "provisioning" } }} count={of("provisioning")} word={text.tiles.provisioning} />
    </>
  );
};

export const CommandTiles = () => {
  const { data, error, refetch } = useQuery(api.commands.summary.queryOptions({}));
  const open = data === undefined ? undefined : Object.values(data.open).reduce((sum, count) => sum + count, 0);
  return (
    <>
      {error === null ? null : <Failure error={error} retry={() => void refetch()} />}
      <Tile
        link={{ to: "/commands", search: { show: "open" } }}
        count={data?.pastDeadline}
        word={text.tiles.pastDeadline(data?.pastDeadline ?? 0)}
        tone={data === undefined ? undefined : data.pastDeadline === 0 ? "good" : "bad"}
      />
      <Tile link={{ to: "/commands", search: { show: "open" } }} count={open} word={text.tiles.open(open ?? 0)} />
    </>
  );
};

export const AlertTile = () => {
  const { data, error, refetch } = useQuery(api.alerts.summary.queryOptions({}));
  const open = data === undefined ? undefined : Object.values(data.open).reduce((sum, count) => sum + count, 0);
  return (
    <>
      {error === null ? null : <Failure error={error} retry={() => void refetch()} />}
      <Tile
        link={{ to: "/alerts", search: { status: "open" } }}
        count={open}
        word={text.tiles.alerts(open ?? 0)}
        tone={open === undefined ? undefined : open === 0 ? "good" : "bad"}
      />
    </>
  );
};
