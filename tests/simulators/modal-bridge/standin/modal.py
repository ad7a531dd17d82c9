"""Stands in for the modal package: the calls that the bridge makes, with the machines of machines.mjs."""

import asyncio
import base64
import json
import os
import types
import urllib.error
import urllib.parse
import urllib.request

MACHINES = os.environ["MACHINES"]
boxes = {}  # every sandbox by its name; the newest of that name


class NotFoundError(Exception):
    pass


class AlreadyExistsError(Exception):
    pass


exception = types.SimpleNamespace(NotFoundError=NotFoundError, AlreadyExistsError=AlreadyExistsError)


class Aio:
    """A method that is called as .aio(...)."""

    def __init__(self, function):
        self.function = function

    def __get__(self, instance, owner):
        return types.SimpleNamespace(aio=lambda *args, **more: self.function(instance or owner, *args, **more))


def ask_now(name, verb, body):
    url = f"{MACHINES}/{urllib.parse.quote(name)}/{verb}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=120) as reply:
            return json.loads(reply.read())
    except urllib.error.HTTPError as e:
        raise (NotFoundError if e.code == 410 else RuntimeError)(e.read().decode()) from None


async def ask(name, verb, **body):
    return await asyncio.to_thread(ask_now, name, verb, body)


class Image:
    @staticmethod
    def debian_slim():
        return Image()

    @staticmethod
    def from_registry(name):
        if not name:
            raise ValueError("an image needs a name")
        return Image()

    def add_local_file(self, here, there):
        assert os.path.isfile(here) and there.startswith("/")
        return self


class Secret:
    @staticmethod
    def from_name(name, required_keys):
        assert name == "sbx-bridge" and required_keys == ["BRIDGE_TOKEN"]


class App:
    def __init__(self, name):
        self.name = self.app_id = name

    def function(self, image, secrets, timeout):
        assert isinstance(image, Image) and len(secrets) == 1 and timeout >= 60
        return lambda f: f

    @Aio
    async def lookup(cls, name, create_if_missing):
        assert create_if_missing
        return App(name)


def concurrent(max_inputs):
    return lambda f: f


def asgi_app(label):
    return lambda f: f


class Stream:
    def __init__(self, data):
        self.data = base64.b64decode(data)

    @Aio
    async def read(self):
        return self.data


class Process:
    def __init__(self, result):
        self.code = result["code"]
        self.stdout, self.stderr = Stream(result["stdout"]), Stream(result["stderr"])

    @Aio
    async def wait(self):
        return self.code


class Files:
    def __init__(self, box):
        self.box = box

    @Aio
    async def write_bytes(self, data, path):
        await ask(self.box.name, "write", path=path, bytes=base64.b64encode(data).decode())


class Sandbox:
    @Aio
    async def create(cls, app, name, tags, image, timeout, env, idle_timeout=None, cpu=None, memory=None, block_network=False):
        assert app.name == "sbx-bridge-boxes" and isinstance(image, Image) and 1 <= timeout <= 86400
        assert all(isinstance(v, str) for v in tags.values())
        if name in boxes and boxes[name].over is None:
            raise AlreadyExistsError(name)
        box = boxes[name] = Sandbox()
        box.name, box.tags, box.env, box.over, box.filesystem = name, tags, env, None, Files(box)
        box.timer = asyncio.get_running_loop().call_later(timeout, lambda: asyncio.ensure_future(box.end()))
        await ask(name, "start")
        return box

    @Aio
    async def from_name(cls, app_name, name):
        assert app_name == "sbx-bridge-boxes"
        if name not in boxes or boxes[name].over is not None:
            raise NotFoundError(name)
        return boxes[name]

    @Aio
    async def list(cls, app_id):
        raise AssertionError("replaced below")

    @Aio
    async def get_tags(self):
        return dict(self.tags)

    @Aio
    async def exec(self, *argv, timeout, text):
        assert text is False and len("".join(argv).encode()) <= 65536
        if self.over is not None:
            raise NotFoundError("the sandbox has ended")
        env = [f"{name}={value}" for name, value in self.env.items()]
        return Process(await ask(self.name, "exec", argv=["env", *env, *argv], timeoutMs=timeout * 1000))

    @Aio
    async def poll(self):
        return self.over

    async def end(self):
        if self.over is None:
            await ask(self.name, "end")
            self.timer.cancel()
            self.over = 137

    @Aio
    async def terminate(self):
        await self.end()


async def living(cls, app_id):
    assert app_id == "sbx-bridge-boxes"
    for box in list(boxes.values()):
        if box.over is None:
            yield box


Sandbox.list = types.SimpleNamespace(aio=lambda **more: living(Sandbox, **more))
