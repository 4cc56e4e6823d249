// A shell command that pairs the machine it runs on: asks for a code, activates it with the token, keeps the identity in a file.
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

// Needs sh, curl and sed only. The variables come from outside the script, so nothing of ours is ever parsed as shell.
const SCRIPT = [
  "set -eu; umask 077",
  "id=$(cat /etc/machine-id 2>/dev/null || hostname)",
  'fingerprint=$(printenv MOORING_FINGERPRINT || echo "machine-$id")',
  "system=$(uname -s | tr A-Z a-z)",
  'post() { curl -fsS -X POST "$MOORING_URL/v1/pairing/$1" -H "Content-Type: application/json" -d "$2"; }',
  'code=$(post initiate "{\\"device_fingerprint\\":\\"$fingerprint\\",\\"platform\\":\\"$system\\"}" | sed -n "s/.*\\"pairing_code\\":\\"\\([A-Z-]*\\)\\".*/\\1/p")',
  'post auto-activate "{\\"enrollment_token\\":\\"$MOORING_TOKEN\\",\\"pairing_code\\":\\"$code\\"}" > mooring-device.json',
  "echo paired, identity in mooring-device.json",
].join("; ");

export const installCommand = (publicUrl: string, token: string): string =>
  `MOORING_URL=${quote(publicUrl)} MOORING_TOKEN=${quote(token)} sh -c ${quote(SCRIPT)}`;
