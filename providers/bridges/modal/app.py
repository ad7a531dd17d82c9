"""sbx-bridge 1: sandboxes of this Modal account over plain HTTP. README.md tells what it is for.

Modal itself keeps the state: a sandbox carries its id as its name, its end as its time-out, the rest in tags.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import os
import re
import time
import uuid
from pathlib import Path
from urllib.parse import parse_qs, unquote

import modal

HERE = Path(__file__).parent
SCRIPT = (HERE / "box.sh").read_text()
BOX_ID = re.compile(r"[a-z][a-z0-9-]{7,62}")
EXEC_ID = re.compile(r"[A-Za-z0-9-]{8,64}")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BASE = "/bridge/v1/sandboxes"
TOKEN_MIN = 32
FOLLOW_MS = 60_000
BLOCK = 8 << 20  # bytes of a file in one call
BODY = 1 << 20
COMMAND = 32768  # bytes: command, env and stdin together
SLICE = 262144  # bytes of a stream in one frame
WAIT_S = 2  # how long a poll waits inside the sandbox
SCRIPT_S = 40  # no script takes longer
BEAT_S = 10
STOP_S = 20  # after that a caller learns "stopping"

# Sandboxes live in an app of their own: deploying the bridge again leaves them alone.
BOXES = "sbx-bridge-boxes"
app = modal.App("sbx-bridge")


class Wrong(Exception):
    """A refusal: becomes the reply {"error": {"code", "message"}}."""

    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code = status, code


def bad(message):
    return Wrong(400, "bad_request", message)


# -- what comes in -------------------------------------------------------------------------------------


class Request:
    def __init__(self, scope, receive):
        self.method = scope["method"]
        self.path = unquote(scope.get("raw_path", scope["path"].encode()).split(b"?")[0].decode("latin1"))
        self.query = parse_qs(scope["query_string"].decode("latin1"), keep_blank_values=True)
        self.headers = dict(scope["headers"])
        self._receive = receive

    async def body(self, most):
        parts, size = [], 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise bad("the body broke off")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise Wrong(413, "too_large", f"the body may have {most} bytes")
            if not message.get("more_body"):
                return b"".join(parts)

    async def object(self):
        try:
            value = json.loads((await self.body(BODY)).decode("utf-8"))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise bad("the body must be a JSON object")
        return value

    def one(self, name):
        values = self.query.get(name, [])
        if len(values) > 1:
            raise bad(f"{name} may be given once")
        return values[0] if values else None

    def number(self, name, otherwise):
        value = self.one(name)
        if value is None:
            return otherwise
        if not re.fullmatch(r"[0-9]{1,15}", value):
            raise bad(f"{name} must be a number")
        return int(value)


def admit(request):
    """Both sides are hashed, so that the comparison tells nothing, not even the length."""
    token = os.environ.get("BRIDGE_TOKEN", "")
    if len(token) < TOKEN_MIN:
        raise Wrong(503, "misconfigured", "BRIDGE_TOKEN is not set")
    given = re.fullmatch(rb"(?i)bearer +(\S+)", request.headers.get(b"authorization", b""))
    hashes = [hashlib.sha256(side).digest() for side in (given[1] if given else b"", token.encode())]
    if not hmac.compare_digest(*hashes):
        raise Wrong(401, "unauthorized", "this token is not the bridge's")


def whole(value, name, least, most, otherwise=None):
    if value is None and otherwise is not None:
        return otherwise
    if type(value) is not int or not least <= value <= most:
        raise bad(f"{name} must be a whole number from {least} to {most}")
    return value


def text(value, name, otherwise=None):
    if value is None and otherwise is not None:
        return otherwise
    if not isinstance(value, str) or "\0" in value:
        raise bad(f"{name} must be a text without NUL")
    return value


def texts(value, name):
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad(f"{name} must be an object")
    return {key: text(one, f"{name}.{key}") for key, one in value.items()}


def variables(value):
    env = texts(value, "env")
    if not all(ENV_NAME.fullmatch(name) for name in env):
        raise bad("env has a bad name")
    return env


# -- one sandbox ---------------------------------------------------------------------------------------


async def find(id):
    """The running sandbox of this name, or None."""
    try:
        box = await modal.Sandbox.from_name.aio(BOXES, id)
    except modal.exception.NotFoundError:
        return None
    return box if await box.poll.aio() is None else None


async def run(box, verb, *args):
    """Runs a verb of box.sh; gives its words and the lines behind them. Modal never replaces a machine, so
    box.sh need not look whether something ran there before."""
    process = await box.exec.aio("sh", "-c", SCRIPT, "box", verb, "1", *map(str, args), timeout=SCRIPT_S, text=False)
    out, err = await asyncio.gather(process.stdout.read.aio(), process.stderr.read.aio())
    await process.wait.aio()
    head, *lines = out.decode("utf-8", "replace").split("\n")
    mark, *words = head.split(" ")
    if mark != "box" or not words:
        if await ended(box):
            raise Wrong(404, "sandbox_not_found", "the sandbox has just ended")
        raise Wrong(502, "provider_error", f"unexpected answer: {(err or out)[:200].decode('utf-8', 'replace')}")
    return words, lines


async def follow(box, id, stdout, stderr, ms):
    """What a command did from these offsets on, until it ends or ms are over."""
    end = time.monotonic() + ms / 1000
    beat = time.monotonic()
    yield {"t": "start", "exec_id": id}
    try:
        while True:
            wait = max(0, min(WAIT_S, int(end - time.monotonic() + 0.999)))
            (state, *words), lines = await run(box, "poll", id, stdout, stderr, SLICE, wait)
            if state == "gone":
                yield {"t": "error", "code": "exec_not_found", "message": "no such command here"}
                return
            out, err = lines[0], lines[1]
            if out:
                yield {"t": "out", "s": "stdout", "o": stdout, "d": out}
            if err:
                yield {"t": "out", "s": "stderr", "o": stderr, "d": err}
            stdout += len(base64.b64decode(out))
            stderr += len(base64.b64decode(err))
            code, late, out_size, err_size = words
            if stdout >= int(out_size) and stderr >= int(err_size):
                if state == "done":
                    yield {"t": "exit", "code": int(code), "timed_out": late == "1"}
                    return
                if state == "lost":
                    yield {"t": "error", "code": "exec_lost", "message": "nobody knows how the command ended"}
                    return
            if time.monotonic() >= end:
                yield {"t": "pending", "stdout": stdout, "stderr": stderr}
                return
            if out or err:
                beat = time.monotonic()
            elif time.monotonic() - beat >= BEAT_S:
                beat = time.monotonic()
                yield {"t": "hb"}
    except Exception as e:
        # A sandbox that ended under its command can not be asked any more.
        gone = isinstance(e, modal.exception.NotFoundError) or await ended(box)
        code = "exec_lost" if gone else getattr(e, "code", "provider_error")
        yield {"t": "error", "code": code, "message": f"{type(e).__name__}: {e}"[:300]}


async def ended(box):
    try:
        return await box.poll.aio() is not None
    except Exception:
        return False


def file_word(word):
    if word == "missing":
        raise Wrong(404, "file_not_found", "there is no such file")
    if word == "folder":
        raise Wrong(400, "is_directory", "this is a folder")
    if word == "conflict":
        raise Wrong(409, "conflict", "the file does not end at this offset")
    if word != "ok":
        raise Wrong(400, "file_error", "the file can not be read or written")


# -- the calls: each gives status and body, and more headers where it has some -----------------------------


def health():
    ok = len(os.environ.get("BRIDGE_TOKEN", "")) >= TOKEN_MIN
    return 200 if ok else 503, {
        "ok": ok,
        "contract": "sbx-bridge",
        "version": 1,
        "minor": 0,
        "provider": "modal",
        "features": ["exec", "kill", "stdin", "env", "files", "ttl", "image", "network", "limits"],
        "limits": {"follow_ms": FOLLOW_MS, "file_block": BLOCK, "command_bytes": COMMAND},
    }


def view(tags):
    kept = json.loads(tags["sbx"])
    return {"id": tags["sbx_id"], "state": "running", **kept}


async def boxes_app():
    return await modal.App.lookup.aio(BOXES, create_if_missing=True)


async def list_boxes(request):
    wanted = [label.partition("=") for label in request.query.get("label", [])]
    if not all(name and sign for name, sign, _ in wanted):
        raise bad("label must be name=value")
    found = []
    async for box in modal.Sandbox.list.aio(app_id=(await boxes_app()).app_id):
        tags = await box.get_tags.aio()
        if "sbx_id" in tags:
            one = view(tags)
            if all(one["labels"].get(name) == value for name, _, value in wanted):
                found.append(one)
    return 200, {"sandboxes": found}


def limits(body):
    """Options of Modal, and what this sandbox then has. Request and limit are the same."""
    options, has = {}, {}
    if body.get("memory_mib") is not None:
        has["memory_mib"] = mib = whole(body["memory_mib"], "memory_mib", 1, 1 << 20)
        options["memory"] = (mib, mib)
    if body.get("cpu") is not None:
        has["cpus"] = whole(body["cpu"], "cpu", 1, 1024)
        cores = has["cpus"] / 2  # Modal counts cores, of two processors each
        options["cpu"] = (cores, cores)
    network = text(body.get("network"), "network", "internet")
    if network not in ("internet", "none"):
        raise Wrong(400, "unsupported", "network may be internet or none")
    if network == "none":
        options["block_network"] = True
    enforced = [word for word, name in (("memory", "memory_mib"), ("cpus", "cpus")) if name in has]
    return options, {"limits": has, "network": network, "enforced": [*enforced, "network"]}


async def create(request):
    body = await request.object()
    id = text(body.get("id"), "id")
    if not BOX_ID.fullmatch(id):
        raise bad("id must be 8 to 63 of a-z, 0-9 and -, and begin with a letter")
    ttl = whole(body.get("ttl_seconds"), "ttl_seconds", 1, 86400)
    options, given = limits(body)
    if body.get("idle_seconds") is not None:
        options["idle_timeout"] = whole(body["idle_seconds"], "idle_seconds", 1, 86400)
    image = text(body.get("image"), "image", "")
    now = round(time.time(), 3)
    kept = {"created_at": now, "expires_at": now + ttl, "labels": texts(body.get("labels"), "labels"), **given}
    tags = {"sbx_id": id, "sbx": json.dumps(kept)}
    try:
        await modal.Sandbox.create.aio(
            app=await boxes_app(),
            name=id,
            tags=tags,
            image=modal.Image.from_registry(image) if image else modal.Image.debian_slim(),
            timeout=ttl,
            env=variables(body.get("env")),
            **options,
        )
        return 201, view(tags)
    except modal.exception.AlreadyExistsError:
        box = await find(id)
        if box is None:
            raise Wrong(409, "conflict", "this sandbox is just being stopped") from None
        return 200, view(await box.get_tags.aio())


async def stop(id, box):
    if box is not None:
        await box.terminate.aio()
        end = time.monotonic() + STOP_S
        while await box.poll.aio() is None:
            if time.monotonic() > end:
                return 202, {"id": id, "state": "stopping"}
            await asyncio.sleep(0.25)
    return 200, {"id": id, "state": "stopped"}


async def start(request, box):
    body = await request.object()
    id = text(body.get("exec_id"), "exec_id")
    if not EXEC_ID.fullmatch(id):
        raise bad("exec_id must be 8 to 64 letters, digits and -")
    argv = body.get("argv")
    if not isinstance(argv, list) or not argv or argv[0] == "":
        raise bad("argv must be a list that begins with a program")
    argv = [text(word, f"argv[{i}]") for i, word in enumerate(argv)]
    env = [f"{name}={value}" for name, value in variables(body.get("env")).items()]
    stdin = text(body.get("stdin_b64"), "stdin_b64", "")
    try:
        base64.b64decode(stdin, validate=True)
    except binascii.Error:
        raise bad("stdin_b64 is not base64") from None
    cwd = text(body.get("cwd"), "cwd", "")
    if cwd and not cwd.startswith("/"):
        raise Wrong(400, "bad_cwd", "cwd must be absolute")
    seconds = -(-whole(body.get("timeout_ms"), "timeout_ms", 0, 86_400_000, 0) // 1000)
    ms = whole(body.get("follow_ms"), "follow_ms", 0, FOLLOW_MS, 30_000)
    words = ["env", *env, *argv] if env else argv
    if len("".join([id, cwd, stdin, *words]).encode("utf-8", "surrogatepass")) > COMMAND:
        raise Wrong(413, "too_large", f"command, env and stdin may have {COMMAND} bytes together")
    (word, *_), _ = await run(box, "start", id, cwd, seconds, stdin, *words)
    if word == "badcwd":
        raise Wrong(400, "bad_cwd", "cwd is no folder that can be entered")
    if word == "nospace":
        raise Wrong(502, "provider_error", "the disk of the sandbox is full")
    return 200, follow(box, id, 0, 0, ms)


async def go_on(request, box, id):
    stdout, stderr = request.number("stdout", 0), request.number("stderr", 0)
    ms = min(request.number("follow_ms", 30_000), FOLLOW_MS)
    # A stream says 200 before anything is known, so a command that was never here is looked for first.
    (word, *_), _ = await run(box, "poll", id, 0, 0, 0, 0)
    if word == "gone":
        raise Wrong(404, "exec_not_found", "no such command here")
    return 200, follow(box, id, stdout, stderr, ms)


async def kill(request, box, id):
    signal = text((await request.object()).get("signal"), "signal", "KILL")
    if signal not in ("KILL", "TERM", "INT"):
        raise bad("signal must be KILL, TERM or INT")
    (word, *_), _ = await run(box, "kill", id, signal)
    if word == "gone":
        raise Wrong(404, "exec_not_found", "no such command here")
    return 200, {"state": word}


async def file(request, box):
    path, offset = request.one("path") or "", request.number("offset", 0)
    if not path.startswith("/") or "\0" in path or len(path) > 4095:
        raise bad("path must be one absolute path")
    if request.method == "PUT":
        part = f"/tmp/.sbx-part-{uuid.uuid4()}"
        await box.filesystem.write_bytes.aio(await request.body(BLOCK), part)
        words, _ = await run(box, "write", path, offset, part)
        file_word(words[0])
        return 200, {"size": int(words[1])}
    words, lines = await run(box, "read", path, offset, min(request.number("length", BLOCK), BLOCK))
    file_word(words[0])
    return 200, base64.b64decode(lines[0]), [(b"x-file-size", words[1].encode())]


# -- routes --------------------------------------------------------------------------------------------

ROUTE = re.compile(BASE + r"/([^/]+)(?:/(?:(exec)(?:/([^/]+)(/kill)?)?|(file)))?")


def only(request, *methods):
    if request.method not in methods:
        raise Wrong(405, "method_not_allowed", "not with this method")


async def answer(request):
    if request.path == "/health":
        only(request, "GET")
        return health()
    admit(request)
    if request.path == BASE:
        only(request, "GET", "POST")
        return await (list_boxes if request.method == "GET" else create)(request)
    match = ROUTE.fullmatch(request.path)
    id, is_exec, exec_id, is_kill, is_file = match.groups() if match else [None] * 5
    if not id or not BOX_ID.fullmatch(id) or (exec_id and not EXEC_ID.fullmatch(exec_id)):
        raise Wrong(404, "not_found", "there is no such route")
    if is_exec:
        only(request, "POST" if is_kill or not exec_id else "GET")
    else:
        only(request, "GET", "PUT" if is_file else "DELETE")
    box = await find(id)
    if request.method == "DELETE":
        return await stop(id, box)
    if box is None:
        raise Wrong(404, "sandbox_not_found", "there is no such running sandbox")
    if is_file:
        return await file(request, box)
    if not is_exec:
        return 200, view(await box.get_tags.aio())
    if not exec_id:
        return await start(request, box)
    return await (kill if is_kill else go_on)(request, box, exec_id)


async def serve(scope, receive, send):
    """The ASGI application: plain HTTP needs no framework."""
    if scope["type"] != "http":
        return
    try:
        status, body, *more = await answer(Request(scope, receive))
    except Wrong as e:
        status, body, more = e.status, {"error": {"code": e.code, "message": str(e)}}, []
    except modal.exception.NotFoundError:
        status, body, more = 404, {"error": {"code": "sandbox_not_found", "message": "the sandbox has just ended"}}, []
    except Exception as e:
        status, more = 502, []
        body = {"error": {"code": "provider_error", "message": f"{type(e).__name__}: {e}"[:300]}}
    kind = {dict: b"application/json", bytes: b"application/octet-stream"}.get(type(body), b"application/x-ndjson")
    headers = [(b"content-type", kind), (b"cache-control", b"no-store"), *(more[0] if more else [])]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    if isinstance(body, bytes):
        await send({"type": "http.response.body", "body": body})
        return
    async for frame in body:
        await send({"type": "http.response.body", "body": json.dumps(frame).encode() + b"\n", "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@app.function(
    image=modal.Image.debian_slim().add_local_file(HERE / "box.sh", "/root/box.sh"),
    secrets=[modal.Secret.from_name("sbx-bridge", required_keys=["BRIDGE_TOKEN"])],
    timeout=300,
)
@modal.concurrent(max_inputs=100)
@modal.asgi_app(label="sbx-bridge")
def bridge():
    return serve
