#!/bin/sh
# Connects this machine to a Mooring gateway as a device: installs mooring-agent, pairs it, starts it as a service and waits until it is online.
#   curl -fsSL GATEWAY/install.sh | sudo sh -s -- --token TOKEN
# Run again, it upgrades the agent and changes nothing else. --help tells the options.
# shellcheck disable=SC2015 # `fail` ends the script, so A && B || fail is if-then-else.
set -eu

URL='@URL@'
UPDATE_KEY='@UPDATE_KEY@'

usage() {
  cat <<END
Connects this machine to $URL as a device.   ... | sh -s -- [options]

  --token TOKEN   an enrollment token; without it the script shows a code, and waits until a person approves it
  --name NAME     how people see the device (default: the name of the machine)
  --host KIND     what runs apps: compose, process or none (default: compose where Docker answers, else process)
  --data DIR      where apps and their data are
  --ca FILE       trusts these certificates (PEM), too
  --url URL       another address of the gateway
  --no-service    installs and pairs, and starts nothing
  --uninstall     removes the agent and keeps its data; --purge removes them as well
END
}

say() { printf '%s\n' "$*"; }; has() { command -v "$1" >/dev/null 2>&1; }
# The exit codes: 2 usage, 3 not fetched, 4 another sum, 5 no agent for this machine, 6 not written, 7 not paired, 8 not online.
fail() { code=$1; shift; printf 'mooring-agent: %s\n' "$*" >&2; exit "$code"; }

fetch() {
  if has curl; then
    if [ -n "$CA" ]; then curl -fsSL --retry 2 --connect-timeout 15 --cacert "$CA" -o "$2" "$1"; else curl -fsSL --retry 2 --connect-timeout 15 -o "$2" "$1"; fi
  elif has wget; then
    if [ -n "$CA" ]; then wget -q -T 30 --ca-certificate="$CA" -O "$2" "$1"; else wget -q -T 30 -O "$2" "$1"; fi
  else fail 3 "needs curl or wget to fetch the agent; install one of them"; fi || { rm -f "$2"; return 1; }
}

places() {
  if [ "$(id -u)" = 0 ]; then
    ROOT=yes PREFIX=/opt/mooring-agent CONFIG=/etc/mooring-agent BIN=/usr/local/bin UNITS=/etc/systemd/system OWNER=mooring-agent
    DATA=${DATA:-/var/lib/mooring-agent}
  else
    ROOT='' PREFIX=$HOME/.local/lib/mooring-agent CONFIG=${XDG_CONFIG_HOME:-$HOME/.config}/mooring-agent BIN=$HOME/.local/bin OWNER=''
    UNITS=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
    DATA=${DATA:-${XDG_DATA_HOME:-$HOME/.local/share}/mooring-agent}
  fi
  SERVICE=none
  if [ -n "$ROOT" ] && [ -d /run/systemd/system ]; then SERVICE=systemd
  elif [ -z "$ROOT" ] && [ -d "/run/user/$(id -u)/systemd" ]; then SERVICE=systemd-user
  elif [ -n "$ROOT" ] && has openrc-run && [ -d /run/openrc ]; then SERVICE=openrc; fi
  [ -z "$NO_SERVICE" ] || SERVICE=none
}

systemd() { if [ "$SERVICE" = systemd-user ]; then XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user "$@"; else systemctl "$@"; fi; }
# As the user of the service; nothing secret is among the words.
as_owner() { if [ -n "$OWNER" ]; then su -s /bin/sh "$OWNER" -c "$*"; else sh -c "$*"; fi; }
yaml() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/''/g")"; }
quoted() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

# Apps outlive the agent, and not its removal; its user runs nothing else. LEFT: who gets the signal.
end_apps() {
  LEFT=''; [ -n "$OWNER" ] || return 0
  for each in /proc/[0-9]*; do [ "$(stat -c %U "$each" 2>/dev/null)" != "$OWNER" ] || { kill "-$1" "${each#/proc/}" 2>/dev/null && LEFT="$LEFT ${each#/proc/}"; } || :; done
}

uninstall() {
  case $SERVICE in
    systemd*) systemd disable --now mooring-agent >/dev/null 2>&1 || :; rm -f "$UNITS/mooring-agent.service"; systemd daemon-reload || : ;;
    openrc) rc-service mooring-agent stop >/dev/null 2>&1 || :; rc-update del mooring-agent >/dev/null 2>&1 || :; rm -f /etc/init.d/mooring-agent ;;
  esac
  end_apps TERM; for _ in 1 2 3 4 5; do [ -z "$LEFT" ] || { sleep 1; end_apps 0; }; done; [ -z "$LEFT" ] || end_apps KILL
  rm -rf "$PREFIX" "$CONFIG"; rm -f "$BIN/mooring-agent"
  if [ -n "$PURGE" ]; then rm -rf "$DATA"; if [ -n "$OWNER" ] && has userdel; then userdel "$OWNER" 2>/dev/null || :; fi; say "removed mooring-agent and its data"
  else say "removed mooring-agent; its data stay in $DATA"; fi
  exit 0
}

named() { sed -n "s/^\([0-9a-f]\{64\}\)  \($1\)\$/\1 \2/p" "$TEMP/SHA256SUMS" | tail -n 1; }
# Sets FILE and SUM: a tarball brings its Node along, and the one file runs with the Node that is here.
choose() {
  case $(uname -s)/$(uname -m) in Linux/x86_64) arch=x64 ;; Linux/aarch64 | Linux/arm64) arch=arm64 ;; Linux/armv7l | Linux/armv8l) arch=armv7l ;; *) arch=other ;;
  esac
  line=$(named "mooring-agent-[0-9].*-linux-$arch\\.tar\\.gz")
  if [ -z "$line" ]; then
    has node && node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' ||
      fail 5 "this gateway has no agent for $(uname -s) $(uname -m); its operator makes one (npm run agent:package), or you install Node 20.19 or newer here"
    line=$(named 'mooring-agent\.mjs')
  fi
  [ -n "$line" ] || fail 5 "this gateway offers no agent; its operator makes one (npm run agent:package)"
  SUM=${line%% *} FILE=${line##* }
}

# Fetches a file into $TEMP and compares its sum.
get() {
  fetch "$URL/v1/agent/install/$1" "$TEMP/$1" || fail 3 "$URL/v1/agent/install/$1 cannot be fetched; try again"
  [ "$(sha256sum "$TEMP/$1" | cut -d ' ' -f 1)" = "$2" ] || fail 4 "$1 is not the file that the gateway names (another SHA-256); something on the way has changed it"
}

unpack() {
  TARGET=$PREFIX/$(printf '%s' "$SUM" | cut -c 1-12) UNIT=$(named 'mooring-agent\.service')
  get mooring-agent.service "${UNIT%% *}"
  [ ! -d "$TARGET" ] || return 0
  get "$FILE" "$SUM"
  rm -rf "$TARGET.next" && mkdir -p "$TARGET.next/bin" "$TARGET.next/lib" || fail 6 "$PREFIX cannot be written"
  case $FILE in
    *.tar.gz) tar -xzf "$TEMP/$FILE" -C "$TARGET.next" --strip-components=1 ;;
    *) cp "$TEMP/$FILE" "$TARGET.next/lib/" && printf '#!/bin/sh\nexec "%s" "%s/lib/%s" "$@"\n' "$(command -v node)" "$TARGET" "$FILE" >"$TARGET.next/bin/mooring-agent" && chmod 755 "$TARGET.next/bin/mooring-agent" ;;
  esac || { rm -rf "$TARGET.next"; fail 6 "$FILE cannot be unpacked into $PREFIX; is there room (df -h $PREFIX)?"; }
  mv "$TARGET.next" "$TARGET"
}

configure() {
  if [ -n "$OWNER" ] && ! id "$OWNER" >/dev/null 2>&1; then
    if has useradd; then useradd --system --home-dir "$DATA" --shell /usr/sbin/nologin "$OWNER"; else adduser -S -D -H -h "$DATA" -s /sbin/nologin "$OWNER"; fi ||
      fail 6 "the user $OWNER cannot be made"
  fi
  mkdir -p "$CONFIG" "$DATA" "$BIN" || fail 6 "$CONFIG, $DATA or $BIN cannot be written"
  chmod 700 "$DATA"
  if [ "$HOST" = compose ] && [ -n "$OWNER" ] && grep -q '^docker:' /etc/group; then
    say "adding $OWNER to the group docker, so that it may run containers"; usermod -aG docker "$OWNER"
  fi
  if [ -n "$CA" ]; then cp "$CA" "$CONFIG/ca.pem" || fail 6 "$CA cannot be read"; fi
  [ -f "$CONFIG/config.yaml" ] || {
    {
      say "url: $URL"; say "host: $HOST"; say "data: $(yaml "$DATA")"
      [ -z "$NAME" ] || say "name: $(yaml "$NAME")"
      [ -z "$UPDATE_KEY" ] || say "update-key: $UPDATE_KEY"
      [ -z "$CA" ] || say "ca: $CONFIG/ca.pem"
    } >"$CONFIG/config.yaml.next" && mv "$CONFIG/config.yaml.next" "$CONFIG/config.yaml" || fail 6 "$CONFIG cannot be written"
  }
  # What Node reads when it starts.
  { [ ! -f "$CONFIG/ca.pem" ] || say "NODE_EXTRA_CA_CERTS=$CONFIG/ca.pem"; [ -z "${HTTPS_PROXY:-}${https_proxy:-}${HTTP_PROXY:-}${http_proxy:-}" ] || say NODE_USE_ENV_PROXY=1; } >"$CONFIG/environment"
  for name in HTTPS_PROXY https_proxy HTTP_PROXY http_proxy NO_PROXY no_proxy; do
    eval "value=\${$name:-}"; [ -z "$value" ] || say "$name=$value"
  done >>"$CONFIG/environment"
  [ -z "$OWNER" ] || { chown "$OWNER" "$DATA"; chmod 644 "$CONFIG"/*; }
  # The former one stays, for what it started.
  former=$(readlink "$PREFIX/current" || :)
  for each in "$PREFIX"/*; do case $each in "$TARGET" | "$former" | "$PREFIX/current") ;; *) rm -rf "$each" ;; esac; done
  ln -sfn "$TARGET" "$PREFIX/current"; ln -sf "$PREFIX/current/bin/mooring-agent" "$BIN/mooring-agent"
  AGENT="MOORING_AGENT_CONFIG=$(quoted "$CONFIG/config.yaml") $(quoted "$PREFIX/current/bin/mooring-agent")"
}

# A user's service has no other user, and a user's manager no right to confine it.
unit() {
  sed -e "s|@PREFIX@|$PREFIX|; s|@CONFIG@|$CONFIG|; s|@DATA@|$DATA|; s|@OWNER@|$OWNER|; s|@URL@|$URL|" "$TEMP/mooring-agent.service" |
    if [ -n "$ROOT" ]; then cat; else sed -e '/^# confined/,/^# end/d' -e 's/multi-user.target/default.target/'; fi
}

start() {
  case $SERVICE in
    systemd*)
      mkdir -p "$UNITS"; unit >"$UNITS/mooring-agent.service"; systemd daemon-reload
      systemd enable mooring-agent >/dev/null 2>&1; systemd restart mooring-agent || fail 8 "the service does not start; see journalctl -u mooring-agent"
      [ "$SERVICE" = systemd ] || { loginctl enable-linger >/dev/null 2>&1 && say "the agent runs without a login of this user, too (linger)" || say "it stops when this user logs out; root allows more: loginctl enable-linger $(id -un)"; } ;;
    openrc)
      printf "#!/sbin/openrc-run\\nsupervisor=supervise-daemon command=%s/current/bin/mooring-agent command_args=run command_user=%s\\noutput_logger='logger -t mooring-agent' error_logger='logger -t mooring-agent'\\nwhile IFS= read -r line; do export \"\$line\"; done <%s/environment\\ndepend() { want net; }\\n" "$PREFIX" "$OWNER" "$CONFIG" >/etc/init.d/mooring-agent
      chmod 755 /etc/init.d/mooring-agent; rc-update add mooring-agent default >/dev/null; rc-service mooring-agent restart || fail 8 "the service does not start; see /var/log" ;;
    none)
      say "There is no service manager that this script uses${NO_SERVICE:+ (--no-service)}. Start the agent with:"
      if [ -n "$OWNER" ]; then say "  su -s /bin/sh $OWNER -c $(quoted "$BIN/mooring-agent run")"; else say "  $BIN/mooring-agent run"; fi
      exit 0 ;;
  esac
  as_owner "$AGENT status --wait" || fail 8 "the agent does not get online within a minute; ask it why: $BIN/mooring-agent doctor"
  say "This device is in the console: $URL/devices"
}

main() {
  TOKEN='' NAME='' HOST='' DATA='' CA='' NO_SERVICE='' REMOVE='' PURGE=''
  while [ $# -gt 0 ]; do
    case $1 in
      --token | --name | --host | --data | --ca | --url)
        [ $# -ge 2 ] && [ -n "$2" ] || fail 2 "$1 needs a value"
        case $1 in --token) TOKEN=$2 ;; --name) NAME=$2 ;; --host) HOST=$2 ;; --data) DATA=$2 ;; --ca) CA=$2 ;; --url) URL=${2%/} ;; esac
        shift ;;
      --no-service) NO_SERVICE=yes ;; --uninstall) REMOVE=yes ;; --purge) PURGE=yes ;; --help | -h) usage; exit 0 ;;
      *) fail 2 "there is no option $1; see --help" ;;
    esac
    shift
  done
  case $HOST in '') if has docker && docker version >/dev/null 2>&1; then HOST=compose; else HOST=process; fi ;; compose | process) ;; none) HOST=simulated ;; *) fail 2 "--host: compose, process or none" ;; esac
  places
  [ -z "$REMOVE" ] || uninstall
  [ ! -f "$CONFIG/config.yaml" ] || grep -qxF "url: $URL" "$CONFIG/config.yaml" || fail 2 "this machine's agent belongs to another gateway ($CONFIG/config.yaml); run this with --uninstall first"
  TEMP=$(mktemp -d) || fail 6 "no temporary folder can be made"
  trap 'rm -rf "$TEMP"' EXIT; trap 'exit 130' INT TERM
  say "installing mooring-agent from $URL into $PREFIX"
  fetch "$URL/v1/agent/install/SHA256SUMS" "$TEMP/SHA256SUMS" || fail 3 "$URL cannot be reached, or offers no agent; check the address, this machine's network and, with a private certificate, --ca"
  choose; unpack; configure
  # The environment keeps the token out of the list of processes.
  MOORING_AGENT_TOKEN=$TOKEN; export MOORING_AGENT_TOKEN
  as_owner "$AGENT pair" </dev/null || fail 7 "this machine is not paired; the message above says why. Run the same line again, with a new token if it is used up or expired"
  unset MOORING_AGENT_TOKEN
  start
}

# Nothing runs before this line, and a part of it is no command.
{ main "$@"; }
