"""Virtual users at a base URL until a file appears and enough was sent; any answer but the right one is a failure.

Closed model without think time. One connection a user, kept; a connection that the balancer ended between two requests is
made anew before the request is sent, as every HTTP client does. A request that was sent is never sent again.
"""

import argparse
import asyncio
import json
import os
import pathlib
import random
import sys
import time
import urllib.parse


class Connection:
    def __init__(self, host, port):
        self.host, self.port, self.streams = host, port, None

    async def ask(self, method, path, headers, body=b""):
        if self.streams is None or self.streams[0].at_eof():
            self.streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self.streams
        head = [f"{method} {path} HTTP/1.1", f"host: {self.host}", f"content-length: {len(body)}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        await writer.drain()
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        answer = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        content = await reader.readexactly(int(answer.get("content-length", "0")))
        if answer.get("connection") == "close":
            writer.close()
            self.streams = None
        return int(lines[0].split()[1]), content


class Load:
    def __init__(self, arguments):
        url = urllib.parse.urlsplit(arguments.target)
        self.host, self.port = url.hostname, url.port
        self.until, self.requests = pathlib.Path(arguments.until), arguments.requests
        self.progress = pathlib.Path(arguments.progress) if arguments.progress else None
        self.sent, self.failures, self.ready = 0, [], 0
        self.vus = arguments.vus

    def enough(self):
        return self.until.exists() and self.sent >= self.requests

    async def expect(self, connection, expected, method, path, headers, body=b""):
        self.sent += 1
        if self.progress and self.sent == self.requests:
            self.progress.touch()
        try:
            status, content = await asyncio.wait_for(connection.ask(method, path, headers, body), 30)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            self.failures.append(f"{method} {path}: {type(error).__name__} {error}")
            connection.streams = None
            return None
        if status != expected:
            self.failures.append(f"{method} {path}: {status} {content[:200].decode(errors='replace')}")
            return None
        return content

    async def user(self, number, gate):
        connection = Connection(self.host, self.port)
        login = json.dumps({"email": f"load.{os.getpid()}.{number}@example.com", "password": "correct horse battery staple"}).encode()
        json_type = {"content-type": "application/json"}
        # A few at once: a quarter of a vCPU hashes some passwords a second, and the queue is bounded on purpose.
        async with gate:
            await self.expect(connection, 201, "POST", "/v1/auth/register", json_type, login)
            answer = await self.expect(connection, 200, "POST", "/v1/auth/login", json_type, login)
        if answer is None:
            return
        token = {"authorization": "Bearer " + json.loads(answer)["access_token"]}
        self.ready += 1
        if self.ready == self.vus:
            print("ready", flush=True)
        choices = random.Random(number)
        while not self.enough():
            kind = choices.random()
            if kind < 0.02:
                async with gate:
                    await self.expect(connection, 200, "POST", "/v1/auth/login", json_type, login)
            elif kind < 0.12:
                body = os.urandom(2_000)
                headers = {**token, "content-type": "application/octet-stream"}
                await self.expect(connection, 201, "POST", "/v1/documents?name=load.bin", headers, body)
            elif kind < 0.22:
                await self.expect(connection, 200, "GET", "/v1/documents?limit=5", token)
            else:
                await self.expect(connection, 200, "GET", "/v1/actors/me", token)
            if len(self.failures) > 100:
                return

    async def run(self):
        gate = asyncio.Semaphore(4)
        await asyncio.gather(*(self.user(number, gate) for number in range(self.vus)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--vus", type=int, required=True)
    parser.add_argument("--until", required=True, help="a file whose appearance ends the load")
    parser.add_argument("--requests", type=int, default=0, help="fewest requests")
    parser.add_argument("--progress", help="a file that is made when so many requests were sent")
    load = Load(parser.parse_args())
    began = time.monotonic()
    asyncio.run(load.run())
    print(f"{load.sent} requests of {load.vus} users in {time.monotonic() - began:.0f} s, {len(load.failures)} failed")
    for failure in load.failures[:10]:
        print(" ", failure)
    return 1 if load.failures else 0


if __name__ == "__main__":
    sys.exit(main())
