// What the URL of the list of volumes says: its filters. The screen knows which orders there are.
import { type Search, textsOf } from "../../api/search.ts";

export const readVolumeSearch = (search: Search) => textsOf(search, ["q", "deviceId", "of", "sort"]);
