"""A small ASGI server for the bridge: one request a connection. Prints its port."""

import asyncio
import sys

sys.path[:0] = [sys.argv[1], sys.argv[2]]  # the stand-in, the bridge
import app as bridge_app  # noqa: E402

bridge = bridge_app.bridge()


async def handle(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = [(k.lower().encode("latin1"), v.strip().encode("latin1")) for k, v in (line.split(":", 1) for line in head[1:] if line)]
    left = int(dict(headers).get(b"content-length", b"0"))
    path, _, query = target.partition("?")

    async def receive():
        nonlocal left
        part = await reader.readexactly(min(left, 65536))
        left -= len(part)
        return {"type": "http.request", "body": part, "more_body": left > 0}

    async def send(message):
        if message["type"] == "http.response.start":
            writer.write(f"HTTP/1.1 {message['status']} Answer\r\nconnection: close\r\ntransfer-encoding: chunked\r\n".encode())
            for name, value in message["headers"]:
                writer.write(name + b": " + value + b"\r\n")
            writer.write(b"\r\n")
            return
        if message["body"]:
            writer.write(f"{len(message['body']):x}\r\n".encode() + message["body"] + b"\r\n")
        if not message.get("more_body"):
            writer.write(b"0\r\n\r\n")
        await writer.drain()

    scope = {"type": "http", "method": method, "path": path, "raw_path": target.encode(), "query_string": query.encode(), "headers": headers}
    try:
        await bridge(scope, receive, send)
        # The rest of a body that was refused is taken, or the reply would be lost with the connection.
        while left:
            await receive()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
