"""A target that registers and logs in rightly, and answers get-user and register wrongly in every way that has a name.

The ways follow one another, endpoint by endpoint. Prints its port, and serves until its standard input ends.
"""

import itertools
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Longer than the TIMEOUT_SECONDS that the client is run with.
SILENCE_SECONDS = 3

GET_USER = itertools.cycle(["right", "shed", "balancer", "stranger", "other-id", "no-json", "garbage", "silence"])
REGISTER = itertools.cycle(["right", "taken", "hang-up"])
LOCK = threading.Lock()


def turn(ways):
    with LOCK:
        return next(ways)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "datum-balancer"
    sys_version = ""
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body, task=True, content_type="application/json", retry_after=False):
        content = body.encode()
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(content)))
        if retry_after:
            self.send_header("retry-after", "1")
        if task:
            self.send_header("server-timing", "db;dur=0.2, app;dur=0.1, total;dur=0.3")
        self.end_headers()
        self.wfile.write(content)

    def problem(self, status, code, task=True):
        self.answer(status, json.dumps({"status": status, "code": code}), task, "application/problem+json", retry_after=status == 503)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        email = body["email"]
        if self.path == "/v1/auth/login":
            tokens = {"access_token": email, "token_type": "Bearer", "expires_in": 900, "refresh_token": "r"}
            return self.answer(200, json.dumps(tokens))
        user = json.dumps({"id": "1", "email": email})
        if email.startswith("vu-"):
            return self.answer(201, user)
        match turn(REGISTER):
            case "right":
                self.answer(201, user)
            case "taken":
                self.problem(409, "email_taken")
            case "hang-up":
                self.close_connection = True

    def do_GET(self):
        email = self.headers["authorization"].removeprefix("Bearer ")
        match turn(GET_USER):
            case "right":
                self.answer(200, json.dumps({"id": "1", "email": email}))
            case "shed":
                self.problem(503, "overloaded")
            case "balancer":
                self.answer(502, "<h1>Bad Gateway</h1>", task=False, content_type="text/html")
            case "stranger":
                self.answer(200, json.dumps({"id": "1", "email": "somebody@else.example"}))
            case "other-id":
                self.answer(200, json.dumps({"id": "2", "email": email}))
            case "no-json":
                self.answer(200, "hello")
            case "garbage":
                self.wfile.write(b"this is not HTTP\r\n\r\n")
                self.close_connection = True
            case "silence":
                time.sleep(SILENCE_SECONDS)
                self.close_connection = True


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
