// Custom domains, as settings: which name servers are asked, and which certificate authority.
import { z } from "zod";
import { list } from "./config-values.ts";

const NAME_SERVER = /^(?:\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?|[\da-fA-F:]+|\[[\da-fA-F:]+\]:\d{1,5})$/;

export const domainSettings = {
  DNS_SERVERS: list
    .pipe(z.array(z.string().regex(NAME_SERVER, "must be an address of a name server, perhaps with a port")).max(4))
    .describe("name servers that are asked about custom domains, all of which have to agree; default those of the system"),
  EDGE_ADDRESSES: list
    .pipe(z.array(z.union([z.ipv4(), z.ipv6()])).max(20))
    .describe("public addresses of the edge, for custom domains without CNAME; default those of domains.TUNNEL_DOMAIN"),
  ACME_DIRECTORY_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("directory of a certificate authority (ACME), such as https://acme-v02.api.letsencrypt.org/directory; if unset, no certificates are ordered"),
  ACME_EMAIL: z.email().optional().describe("address that the certificate authority may write to"),
  ACME_CA_FILE: z.string().min(1).optional().describe("PEM certificates that the certificate authority's own server is checked against; default the system's"),
  ACME_EAB_KEY_ID: z.string().min(1).optional().describe("key id of the account that the certificate authority has given you (external account binding)"),
  ACME_EAB_HMAC_KEY: z.string().min(1).optional().describe("key of ACME_EAB_KEY_ID, in base64url"),
};
