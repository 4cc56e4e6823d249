#!/usr/bin/python3
"""A level 1 agent for Mooring, written from ../../README.md and pairing.md alone. Needs Python 3.9 or newer and one package: apt install python3-websockets

  MOORING_URL=https://gateway.example.com MOORING_STATE=FOLDER [MOORING_ENROLLMENT_TOKEN=TOKEN] agent.py

pairs the machine if it has no identity, with the token or else with a person's approval, then runs until it is killed. Only this agent uses FOLDER;
MOORING_IDENTITY names another file than FOLDER/identity.json. With MOORING_EFFECTS=FILE it knows test.effect, by which the agent kit judges agents.
"""
import asyncio, datetime, fcntl, hashlib, hmac, http.client as wire, json, math, os, random, re, socket, sys, threading, time, urllib.error, urllib.request, uuid
from websockets.exceptions import InvalidStatusCode, WebSocketException
from websockets.legacy.client import connect
connect.MAX_REDIRECTS_ALLOWED = 1  # the first attempt, and no other place

HOUR, OWN, MOST_BYTES = 3600, "x-svc-sig-versions", 2**24
BEGIN_AGAIN = ("PAIRING_CODE_NOT_FOUND", "PAIRING_CODE_EXPIRED", "PAIRING_ALREADY_ACTIVATED")
ASK_A_PERSON = "PAIRING_APPROVAL_REQUIRED"
FIGURES = {"heartbeat.intervalSec": 30, "heartbeat.jitterPct": 10, "heartbeat.graceMs": 10000, "ack.resendMs": 15000, "limits.inboundPerSec": 20,
           "reconnect.baseMs": 1000, "reconnect.capMs": 300000, "reconnect.stableAfterSec": 60, "reconnect.firstWindowMs": 30000}

def log(*words):
    print(datetime.datetime.now().isoformat(timespec="seconds"), *words, flush=True)
def sane(read):  # None for a missing or nonsensical value
    try:
        return read()
    except (AttributeError, TypeError, ValueError):
        return None
def number(value, most):
    return sane(lambda: min(most, float(value)) if float(value) >= 0 and math.isfinite(float(value)) else None)
def milliseconds(text):
    return sane(lambda: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
class Redirected(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):  # the gateway never redirects an agent
        return None
opener = urllib.request.build_opener(Redirected)
def http(url, headers, body=None):
    """Status, Retry-After and JSON of the gateway's answer; status 0 without one: only JSON with `success` under the gateway's header counts."""
    try:
        request = urllib.request.Request(url, body and json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
        try:
            answer = opener.open(request, timeout=20)
        except urllib.error.HTTPError as refusal:
            answer = refusal
        with answer:
            text, until = b"", time.monotonic() + 60
            while part := answer.read1(65536):
                text += part
                if len(text) > MOST_BYTES or time.monotonic() > until:
                    raise ValueError("the answer does not end")
        said = json.loads(text)
        if OWN not in answer.headers or said["success"] is not (200 <= answer.status < 300):
            raise ValueError(f"something else than the gateway answered {answer.status}")
        return answer.status, number(answer.headers.get("Retry-After"), HOUR), said
    except (OSError, ValueError, KeyError, TypeError, wire.HTTPException) as error:
        return 0, None, {"code": repr(error)}
def replace(path, content):
    """Whole or not at all: a file in its place is never half written."""
    file = os.open(path + ".next", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "wb") as next:
        next.write(content)
        next.flush()
        os.fsync(next.fileno())
    os.replace(path + ".next", path)
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)

def repeat(url, body, more=()):  # pairing.md: until the gateway accepts the call, or refuses it in one of these words
    for n in range(30):
        status, retry, answer = http(url, {}, body)
        if status in (200, 201):
            return answer["data"]
        if 400 <= status < 500 and status != 429:
            return answer["code"] if answer.get("code") in more else sys.exit(f"the gateway refused to pair: {status} {answer.get('code')}")
        time.sleep(random.uniform(0, min(60, 2**n)) if retry is None else retry * random.uniform(1, 1.1))
    sys.exit("the gateway did not answer")
def pair(gateway, state, token):
    fingerprint = hashlib.sha256((open("/etc/machine-id").read() + os.path.abspath(state)).encode()).hexdigest()
    for n in range(30):
        given = repeat(gateway + "/v1/pairing/initiate", {"device_fingerprint": fingerprint, "platform": sys.platform})
        code = {"pairing_code": given["pairing_code"]}
        if token:
            identity = repeat(gateway + "/v1/pairing/auto-activate", {"enrollment_token": token, **code}, (*BEGIN_AGAIN, ASK_A_PERSON))
            if isinstance(identity, dict):
                return identity
            if identity != ASK_A_PERSON:
                continue
        log(f"approve {given['pairing_code']} at {given['portal_url']} if it shows {given['comparison']}")
        outcome = {"status": "pending"}
        while outcome["status"] == "pending":
            time.sleep((number(outcome.get("pollAfterSeconds"), HOUR) or 1) * random.uniform(1, 1.1))
            outcome = repeat(gateway + "/v1/pairing/collect", {"device_fingerprint": fingerprint, "pollToken": given["pollToken"], **code})
        if outcome["status"] in ("activated", "rejected"):
            return outcome.get("identity") or sys.exit("somebody rejected this machine")
    sys.exit("the gateway gave no code that could be used")

class Journal:  # section 8: a line when a command begins, one with its result, one when the gateway has confirmed it
    def __init__(self, path):
        self.read(path)
        confirmed = [id for id, entry in self.entries.items() if "confirmed" in entry]
        old = [id for id in confirmed[:-1000] if self.entries[id]["confirmed"] < time.time() - 7 * 86400]
        if old:
            kept = [(id, entry) for id, entry in self.entries.items() if id not in set(old)]
            replace(path, b"".join(self.line(id, entry) for id, entry in kept))
            os.close(self.file)
            self.read(path)
    def line(self, id, what):
        return (json.dumps({"id": id, "is": what}) + "\n").encode()
    def read(self, path):
        self.entries, self.file = {}, os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        raw = open(path, "rb").read()
        self.size = raw.rfind(b"\n") + 1  # a torn last line counts as never written
        os.ftruncate(self.file, self.size)
        for line in raw[: self.size].splitlines():
            try:
                record = json.loads(line)
                self.entries.setdefault(record["id"], {}).update(record["is"])
            except (ValueError, KeyError, TypeError):
                log("THE JOURNAL IS DAMAGED:", line)
                for id in re.findall(rb'"id":\s*"([^"\\]+)"', line):  # a command whose id can be read has begun
                    self.entries.setdefault(id.decode(errors="replace"), {})
    def write(self, id, **what):
        """Appends and syncs a record, then applies it. True if it is on the disk."""
        line = self.line(id, what)
        try:
            if os.write(self.file, line) != len(line):
                raise OSError("no space left")
            os.fsync(self.file)
        except OSError as error:
            os.ftruncate(self.file, self.size)
            return log("CANNOT WRITE THE JOURNAL:", error)
        self.size += len(line)
        self.entries.setdefault(id, {}).update(what)
        return True

def effect(payload, state):  # a command with an effect: writes a line, takes a while, and writes another
    def write(line):
        with open(os.environ["MOORING_EFFECTS"], "a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
    write("begin " + payload["key"])
    time.sleep(payload.get("ms", 0) / 1000)
    if payload.get("fail"):
        raise RuntimeError("it fails as ordered")
    write("end " + payload["key"])
HANDLERS = {"ping": lambda payload, state: {"pong": True}, "echo": lambda payload, state: payload}
if "MOORING_EFFECTS" in os.environ:
    HANDLERS["test.effect"] = effect

class Agent:
    def __init__(self, state, gateway, identity):
        self.identity, self.gateway, plan = identity, gateway, identity.get("connect") or {}
        self.url = plan.get("url") or gateway.replace("http", "ws", 1) + "/v1/agent/connect"
        self.cold_ms = number(plan.get("coldStartMs", 30000), HOUR * 1000) or 0
        self.state, self.journal, self.instance, self.figures = state, Journal(state + "/journal"), str(uuid.uuid4()), dict(FIGURES)
        self.offset, self.last, self.ready, self.foreign = 0, 0, None, False
        for id in [id for id, entry in self.journal.entries.items() if "result" not in entry]:
            if not self.journal.write(id, result={"status": "failed", "code": "AGENT_RESTARTED"}):
                sys.exit("cannot write the state folder")

    # Sections 2 and 3: time and signature.
    def now(self):
        return int(time.time() * 1000 + self.offset)
    def sign(self, body=""):
        self.last = max(self.now(), self.last + 1, 946684800000)  # the year 2000
        stamp = datetime.datetime.fromtimestamp(self.last / 1000, datetime.timezone.utc).isoformat(timespec="milliseconds")
        return stamp, hmac.new(self.identity["shared_secret"].encode(), (body + stamp).encode(), hashlib.sha256).hexdigest()
    def headers(self):
        values = (self.identity["agent_id"], self.identity["tenant_id"], *self.sign())
        return dict(zip(("x-svc-agent-id", "x-svc-tenant-id", "x-svc-timestamp", "x-svc-signature"), values))
    def learn_time(self, text):
        server = milliseconds(text) or self.now()
        if abs(server - self.now()) > 1000:
            self.offset = server - time.time() * 1000
        if self.last > server + 1000:  # or every later timestamp would be ahead, too
            self.last = 0

    # Sections 5 to 7: frames to and from the gateway.
    def adjust(self, data):
        for key in FIGURES:
            group, name = key.split(".")
            most = HOUR * 1000 if name.endswith("Ms") else HOUR
            self.figures[key] = number((data.get(group) or {}).get(name), most) or self.figures[key]
    async def send(self, op, data, carries=None, **more):
        now = time.monotonic()
        self.turn = max(now - 1, self.turn) + 1 / max(1, self.figures["limits.inboundPerSec"])  # a second's frames may go at once
        await asyncio.sleep(self.turn - now)
        self.frames += 1
        if carries:
            self.carries[str(self.frames)] = carries
        await self.socket.send(json.dumps({"op": op, "id": str(self.frames), "data": data, **more}))
    async def tell(self, id, ack):
        if self.ready is not None:
            await self.send("ack", {"commandId": id, **ack}, id if ack is self.journal.entries[id].get("result") else None)
    async def resend(self):
        while True:
            for id in [id for id, entry in self.journal.entries.items() if "result" in entry and "confirmed" not in entry]:
                await self.tell(id, self.journal.entries[id]["result"])
            await asyncio.sleep(self.figures["ack.resendMs"] / 1000)
    async def opening(self):
        await asyncio.sleep(30)
        if self.ready is None:
            await self.socket.close(4001, "no welcome or ready in time")
    async def heartbeat(self):
        due, beat_at = time.monotonic() + random.uniform(0, 5), time.monotonic()
        while True:
            await asyncio.sleep(0.5)  # short, since config may change the interval
            now, interval, jitter = time.monotonic(), self.figures["heartbeat.intervalSec"], self.figures["heartbeat.jitterPct"] / 100
            if self.unanswered >= 2 and now >= beat_at + self.figures["heartbeat.graceMs"] / 1000:
                return await self.socket.close(4002, "heartbeat_timeout")
            if self.unanswered < 2 and now >= min(due, beat_at + interval * (1 + jitter)):
                self.unanswered, beat_at, due = self.unanswered + 1, now, now + interval * random.uniform(1 - jitter, 1 + jitter)
                await self.send("heartbeat", {"status": "online", "metrics": {"load": os.getloadavg()[0]}})
    async def end(self, id, result):
        while not self.journal.write(id, result=result):
            await asyncio.sleep(5)
        log("ended", id, result["status"])
        await self.tell(id, self.journal.entries[id]["result"])
    async def take(self, command, delivery):
        id, kind, loop = command["commandId"], command["type"], asyncio.get_running_loop()
        if id in self.journal.entries:
            return await self.tell(id, self.journal.entries[id].get("result", {"status": "running"}))
        if not self.journal.write(id):
            return
        expired = (milliseconds(delivery.get("expiresAt")) or float("inf")) <= self.now()
        if expired or kind not in HANDLERS:
            return await self.end(id, {"status": "rejected", "code": "EXPIRED" if expired else "UNSUPPORTED_TYPE"})
        def work():
            try:
                result = {"status": "succeeded", "output": HANDLERS[kind](command.get("payload") or {}, self.state)}
            except Exception as error:
                result = {"status": "failed", "code": "HANDLER_FAILED", "output": {"message": repr(error)[:1000]}}
            asyncio.run_coroutine_threadsafe(self.end(id, result), loop)
        log("runs", id, kind)
        await self.tell(id, {"status": "running"})
        threading.Thread(target=work, daemon=True).start()
    async def frame(self, op, data, id, ref):
        if op == "welcome":
            self.adjust(data)
            self.learn_time(data.get("serverTime"))
            await self.send("hello", {"proof": dict(zip(("timestamp", "signature"), self.sign(data["nonce"]))), "instanceId": self.instance,
                                      "hostname": socket.gethostname(), "capabilities": ["journal.v1"], "maxInFlight": 1})
        elif op == "ready":
            self.ready = time.monotonic()
            self.tasks += [asyncio.ensure_future(self.heartbeat()), asyncio.ensure_future(self.resend())]
            log("ready")
        elif op == "command":
            await self.take(data["command"], data.get("delivery") or {})
        elif op == "ack_ok":
            command = self.carries.pop(ref, None)
            if command and "confirmed" not in self.journal.entries[command] and self.journal.write(command, confirmed=time.time()):
                log("confirmed", command, data.get("result"))
        elif op == "heartbeat_ack":
            self.unanswered = 0
        elif op == "config":
            self.adjust(data)
        elif op in ("error", "drain"):
            log(op, data)
        else:
            await self.send("error", {"code": "UNSUPPORTED_OP", "error": "unknown op", "retryable": False}, ref=id)

    # Sections 4 and 9: connections, and how to reconnect.
    async def session(self):  # returns the wait in seconds that the gateway asked for, or None; and whether it says stop
        self.foreign, self.socket, self.tasks, self.frames, self.carries, self.unanswered, self.turn = False, None, [], 0, {}, 0, 0
        try:
            async with connect(self.url, subprotocols=["mooring-agent.v1"], extra_headers=self.headers(), compression=None,
                               ping_interval=None, open_timeout=15, close_timeout=2, max_size=2**18) as self.socket:
                self.tasks.append(asyncio.ensure_future(self.opening()))
                async for text in self.socket:
                    try:
                        frame = json.loads(text)
                        await self.frame(frame["op"], frame.get("data") or {}, frame.get("id"), frame.get("ref"))
                    except (ValueError, KeyError, TypeError, AttributeError) as error:
                        log("cannot read a frame:", repr(error))
        except InvalidStatusCode as refusal:
            log("refused with", refusal.status_code, "" if OWN in refusal.headers else "by something else than the gateway")
            if OWN not in refusal.headers:
                self.foreign = True
                return None, False
            return number(refusal.headers.get("Retry-After"), HOUR), 400 <= refusal.status_code < 500
        except (OSError, WebSocketException, asyncio.TimeoutError) as error:
            log("the connection broke:", repr(error))
        finally:
            self.lasted, self.ready = time.monotonic() - (self.ready or time.monotonic()), None
            for task in self.tasks:
                task.cancel()
        code, reason = (self.socket and self.socket.close_code) or 1006, (self.socket and self.socket.close_reason) or ""
        log("closed with", code, reason)
        return number((re.findall(r"(?:^|;)ra=([0-9.]+)", reason) or [None])[0], HOUR), 4500 <= code <= 4999
    def backoff(self, n):
        most = self.figures["reconnect.firstWindowMs"] if n == 0 else self.figures["reconnect.baseMs"] * 2 ** min(n, 30)
        return random.uniform(0, min(max(most, 20000 if self.foreign else 0), self.figures["reconnect.capMs"])) / 1000
    async def ask(self, n):  # asks REST until it accepts the agent
        wait, corrected, unanswered = self.backoff(n), False, 0
        while True:
            await asyncio.sleep(wait)
            status, retry, answer = await asyncio.to_thread(http, self.gateway + "/v1/agent/me", self.headers())
            if status == 200:
                return
            details, wait = answer.get("details") or {}, random.uniform(240, 360) if retry is None else retry * random.uniform(1, 1.1)
            unanswered = unanswered + 1 if status == 0 else 0
            if status == 0:
                wait = self.backoff(unanswered)
            log("REST refuses:" if status else "no answer:", status, answer.get("code"), details)
            if details.get("reason") == "timestamp_skew" and not corrected:
                wait, corrected = 0, True
                self.learn_time(details.get("serverTime"))
    async def run(self):
        n, wait, stop = 0, random.uniform(0, self.cold_ms) / 1000, False
        while True:
            await (self.ask(n) if stop else asyncio.sleep(wait))
            told, stop = await self.session()
            n = 0 if self.lasted >= self.figures["reconnect.stableAfterSec"] else n + 1
            stop, wait = stop and told is None, self.backoff(n) if told is None else told * random.uniform(1, 1.1)

def main(gateway, state):
    os.makedirs(state, 0o700, exist_ok=True)
    lock, path = open(state + "/lock", "w"), os.environ.get("MOORING_IDENTITY", state + "/identity.json")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"another agent already uses {state}; stop it first")
    if not os.path.exists(path):
        replace(path, json.dumps(pair(gateway, state, os.environ.get("MOORING_ENROLLMENT_TOKEN"))).encode())
        log("paired")
    asyncio.run(Agent(state, gateway, json.load(open(path))).run())

main(os.environ["MOORING_URL"].rstrip("/"), os.environ["MOORING_STATE"]) if "MOORING_URL" in os.environ and "MOORING_STATE" in os.environ else sys.exit(__doc__)
