"""One attack, in a process that ends by itself.

``python -m attacks.attack MODULE.FUNCTION PORT CAFILE SECONDS TOKEN`` prints what it counted.
"""

import importlib
import json
import resource
import signal
import sys

from attacks.clients import Attacker

if __name__ == "__main__":
    name, port, cafile, seconds, token = sys.argv[1:]
    signal.alarm(int(float(seconds)) + 30)  # whatever a connection does
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 20_000), most))
    attacker = Attacker(int(port), cafile or None, float(seconds), token or None)
    module, _, function = name.rpartition(".")
    getattr(importlib.import_module(module), function)(attacker)
    print(json.dumps(attacker.counts))
