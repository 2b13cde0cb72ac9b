"""Runs an emulator of Amazon Cognito until standard input ends, so that none outlives the test that started it.

    emulator.py moto|ministack PORT
"""

import os
import runpy
import sys
import threading


def end_with_standard_input():
    while os.read(0, 4096):
        pass
    os._exit(0)


emulator, port = sys.argv[1:]
threading.Thread(target=end_with_standard_input, daemon=True).start()
if emulator == "moto":
    sys.argv = ["moto_server", "--host", "127.0.0.1", "--port", port]
    module = "moto.server"
else:
    os.environ.update(BIND_HOST="127.0.0.1", GATEWAY_PORT=port, SERVICES="cognito-idp,sts,iam", SFTP_ENABLED="0")
    sys.argv = ["ministack"]
    module = "ministack"
runpy.run_module(module, run_name="__main__", alter_sys=True)
